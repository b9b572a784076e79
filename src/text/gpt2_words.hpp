/// How byte-pair encodings cut text into words before they merge bytes within them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace xtape {

/// A regular expression for words, compiled.
class WordPattern {
 public:
  /// As Hugging Face's tokenizers write it: \s is Unicode's white space, classes are Unicode's. Throws Error, with the
  /// place, where it is none.
  explicit WordPattern(const std::string& pattern);
  /// GPT-2's: contractions, and letters, numbers or other marks in a row, each with a space before it or none; white
  /// space.
  static const WordPattern& gpt2();
  const void* compiled() const { return compiled_.get(); }

 private:
  std::shared_ptr<const void> compiled_;
};

/// The words of a text one after the other, nothing between them: what the pattern finds, and what lies between. Bytes
/// that are not UTF-8 count as marks. Text and pattern must outlive it.
class Gpt2Words {
 public:
  explicit Gpt2Words(std::string_view text, const WordPattern& pattern = WordPattern::gpt2());
  ~Gpt2Words();
  Gpt2Words(const Gpt2Words&) = delete;
  Gpt2Words& operator=(const Gpt2Words&) = delete;
  /// Empty behind the last one.
  std::string_view next();

 private:
  struct Match;
  const WordPattern& pattern_;
  std::string_view text_;
  std::string masked_;     // the text with a mark for each byte that is not UTF-8; empty where all of it is
  std::string_view seen_;  // the one of the two that the pattern is matched with
  std::size_t at_ = 0;
  std::size_t found_begin_ = 0, found_end_ = 0;  // of what was found behind the last word
  std::unique_ptr<Match> match_;
};

}  // namespace xtape
