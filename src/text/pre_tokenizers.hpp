/// The pre-tokenizers of a tokenizer.json: a text is split into words, and a model's pieces are within a word.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json_text.hpp"
#include "word_pattern.hpp"

namespace xtape {

struct Word {
  std::string_view text;  // not empty
  bool first;             // whether it begins the whole text
};
using TakesWord = std::function<void(const Word&)>;

/// One step: splits a word, or writes it in another way.
class WordStep {
 public:
  virtual ~WordStep() = default;
  virtual void apply(const Word& word, const TakesWord& take) const = 0;
};

/// The steps, each of which is applied to the words of the one before it.
class PreTokenizers {
 public:
  PreTokenizers() = default;
  /// From the entry "pre_tokenizer". Throws FileError at what is not supported.
  explicit PreTokenizers(const JsonNode& node);
  static PreTokenizers gpt2();

  void words(const Word& text, const TakesWord& take) const { from(0, text, take); }
  /// Whether words are made of bytes, UTF-8 or not, so that the vocabulary has symbols of bytes (byte_symbols.hpp).
  bool by_bytes() const { return by_bytes_; }

 private:
  void add(const JsonNode& node);
  void split(WordPattern pattern, const std::string& behavior = "Isolated", bool invert = false);
  void from(std::size_t step, const Word& word, const TakesWord& take) const;

  std::vector<std::shared_ptr<const WordStep>> steps_;
  bool by_bytes_ = false;
};

}  // namespace xtape
