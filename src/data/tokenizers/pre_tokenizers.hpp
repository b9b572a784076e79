/// The pre-tokenizers of a tokenizer.json. They split a text into words. The pieces of a model never extend over
/// several words.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tokenizers/word_pattern.hpp"

namespace xtape {

struct Word {
  std::string_view text;  // not empty
  bool first;             // whether it begins with the first character of the whole text
};
using TakesWord = std::function<void(const Word&)>;

/// Splits a word, or rewrites it.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(const Word& word, const TakesWord& take) const = 0;
};

/// A list of steps. Each step applies to the words that the previous step returns.
class PreTokenizers {
 public:
  PreTokenizers() = default;
  /// Reads the entry "pre_tokenizer". Throws FileError at an unsupported entry.
  explicit PreTokenizers(const JsonNode& node);
  static PreTokenizers gpt2(bool prefix_space);

  void words(const Word& text, const TakesWord& take) const { from(0, text, take); }
  /// Returns whether words consist of bytes, which need not be UTF-8. The vocabulary then consists of byte symbols
  /// (unicode.hpp).
  bool by_bytes() const { return by_bytes_; }

 private:
  void add(const JsonNode& node);
  void split(WordPattern pattern, const std::string& behavior = "Isolated", bool invert = false);
  void from(std::size_t step, const Word& word, const TakesWord& take) const;

  std::vector<std::shared_ptr<const PreTokenizer>> steps_;
  bool by_bytes_ = false;
};

}  // namespace xtape
