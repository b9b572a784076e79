/// Regular expressions that split texts.
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
  /// Compiles a pattern in the syntax of Hugging Face's tokenizers (Oniguruma): \s is Unicode white space, and classes
  /// are Unicode classes. Throws Error if the pattern is not UTF-8, is not a valid regular expression, or has a class
  /// inside a class.
  explicit WordPattern(const std::string& pattern);
  /// Returns the pattern that matches exactly `text`, which must not be empty.
  static WordPattern literal(const std::string& text);
  /// Returns the pattern of GPT-2. It matches contractions, white space, and runs of letters, of digits or of other
  /// characters. A run may have one space before it.
  static const WordPattern& gpt2();

  /// Visits the matches and the texts between them, in order and without gaps. A match may be empty. Bytes that are
  /// not UTF-8 count as punctuation.
  void cut(std::string_view text, const std::function<void(const Span&)>& visit) const;
  /// Returns `text` with `with` in place of every match.
  std::string replaced(const std::string& text, const std::string& with) const;

 private:
  std::shared_ptr<const void> compiled_;
};

}  // namespace xtape
