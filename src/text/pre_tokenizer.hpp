/// The pre-tokenization of byte-pair encodings: text is split into words, and merges apply within a word only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace xtape {

/// A compiled regular expression for words.
class WordPattern {
 public:
  /// In the syntax of Hugging Face's tokenizers: \s is Unicode white space, and classes are Unicode classes. Throws
  /// Error if the pattern is not UTF-8 or not a valid regular expression.
  explicit WordPattern(const std::string& pattern);
  /// The pattern of GPT-2: contractions; runs of letters, of digits or of other characters, with an optional space
  /// before each; white space.
  static const WordPattern& gpt2();
  const void* compiled() const { return compiled_.get(); }

 private:
  std::shared_ptr<const void> compiled_;
};

/// Iterates over the words of a text: the matches of the pattern and the text between them, without gaps. Bytes that
/// are not UTF-8 count as punctuation. The text and the pattern must outlive this object.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::string_view text, const WordPattern& pattern = WordPattern::gpt2());
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  /// The next word; empty after the last one.
  std::string_view next();

 private:
  struct Match;
  const WordPattern& pattern_;
  std::string_view text_;
  std::string masked_;     // the text with U+0001 for each byte that is not UTF-8; empty if all of it is UTF-8
  std::string_view seen_;  // masked_ or text_: the one that the pattern is matched with
  std::size_t at_ = 0;
  std::size_t found_begin_ = 0, found_end_ = 0;  // the latest match; it ends at or before at_ once it is used up
  std::unique_ptr<Match> match_;
};

}  // namespace xtape
