/// The steps from a text to tokens and back, which all kinds of published tokenizers share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/normalizers.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/word_models.hpp"
#include "data/tokenizers/word_pattern.hpp"

namespace xtape {

// The pre-tokenizers of a tokenizer.json. They split a text into words. The pieces of a model never extend over
// several words.

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
  /// (utf8.hpp).
  bool by_bytes() const { return by_bytes_; }

 private:
  void add(const JsonNode& node);
  void split(WordPattern pattern, const std::string& behavior = "Isolated", bool invert = false);
  void from(std::size_t step, const Word& word, const TakesWord& take) const;

  std::vector<std::shared_ptr<const PreTokenizer>> steps_;
  bool by_bytes_ = false;
};

class Pipeline {
 public:
  /// Reads the text of a tokenizer.json. Throws FileError at an unsupported entry.
  explicit Pipeline(const JsonNode& json);
  /// Creates GPT-2's pipeline, which splits words by GPT-2's pattern and decodes to bytes.
  Pipeline(std::unique_ptr<WordModel> model, bool prefix_space);

  /// Returns the same pipeline with more tokens. A token with the text of an earlier one replaces it. If `normalized`
  /// is true, the pipeline also normalises the text of the token. Throws Error if a token contradicts the vocabulary.
  Pipeline with(const std::vector<AddedToken>& tokens) const;
  Tokens encode(const std::string& text) const;
  std::string decode(const Tokens& tokens) const;
  /// Returns the piece of a token, or "" if it has none.
  const std::string& piece(std::int32_t token) const;
  std::int32_t token_of(const std::string& piece) const;  ///< -1 if there is no such token
  std::int64_t size() const;
  std::int32_t unknown() const { return model_->unknown(); }
  const Templates& templates() const { return templates_; }

 private:
  /// The words that were encoded before. Each pipeline has its own.
  struct Seen {
    Seen() = default;
    Seen(const Seen&) {}
    std::mutex mutex;
    WordCache words;
  };
  void add(const AddedToken& token);
  void find_added();  // to be called after the last `add`
  std::string normal(std::string text, bool& first) const;
  void append(Tokens& tokens, std::string_view text, bool first, WordCache& cache) const;

  std::vector<Normalizer> normalizers_;
  PreTokenizers words_;
  std::shared_ptr<const WordModel> model_;
  std::vector<Decoder> decoders_;
  std::string between_;                       // inserted between the pieces of a decoded text
  AddedTokens in_text_, in_normal_;           // found before and after normalisation, respectively
  std::map<std::int32_t, AddedToken> added_;  // by token
  TextMap<std::int32_t> added_tokens_;        // by content
  Templates templates_;
  mutable Seen seen_;
};

}  // namespace xtape
