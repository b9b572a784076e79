/// Regular expressions that cut texts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace xtape {

/// A match of a pattern, or the text between two matches.
struct Span {
  std::size_t begin, end;
  bool matched;
};

/// A compiled regular expression.
class WordPattern {
 public:
  /// In the syntax of Hugging Face's tokenizers (Oniguruma): \s is Unicode white space, and classes are Unicode
  /// classes. Throws Error if the pattern is not UTF-8, not a valid regular expression, or has a class inside a class.
  explicit WordPattern(const std::string& pattern);
  /// The pattern that matches `text` itself, which must not be empty.
  static WordPattern literal(const std::string& text);
  /// The pattern of GPT-2: contractions; runs of letters, of digits or of other characters, with an optional space
  /// before each; white space.
  static const WordPattern& gpt2();

  /// Visits the matches and the texts between them, in order and without gaps. A match may be empty. Bytes that are
  /// not UTF-8 count as punctuation.
  void cut(std::string_view text, const std::function<void(const Span&)>& visit) const;
  /// `text` with `with` for every match.
  std::string replaced(const std::string& text, const std::string& with) const;

 private:
  std::shared_ptr<const void> compiled_;
};

}  // namespace xtape
