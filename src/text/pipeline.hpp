/// The steps from a text to tokens and back, which all kinds of published tokenizers share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "added_tokens.hpp"
#include "decoders.hpp"
#include "normalizers.hpp"
#include "pre_tokenizers.hpp"
#include "templates.hpp"
#include "word_model.hpp"

namespace xtape {

class Pipeline {
 public:
  /// Reads the text of a tokenizer.json. Throws FileError at an unsupported entry.
  explicit Pipeline(const JsonNode& json);
  /// Creates GPT-2's pipeline, which splits words by GPT-2's pattern and decodes to bytes.
  explicit Pipeline(std::unique_ptr<WordModel> model);

  /// Adds a token. If `normalized` is true, the pipeline also normalises the text of the token, and finds it in
  /// normalised texts.
  void add(const AddedToken& token, bool normalized = false);
  Tokens encode(const std::string& text) const;
  std::string decode(const Tokens& tokens) const;
  /// Returns the piece of a token, or "" if it has none.
  const std::string& piece(std::int32_t token) const;
  std::int32_t token_of(const std::string& piece) const;  ///< -1 if there is no such token
  std::int64_t size() const;
  std::int32_t unknown() const { return model_->unknown(); }
  const Templates& templates() const { return templates_; }

 private:
  std::string normal(std::string text) const;
  void append(Tokens& tokens, std::string_view text, bool first, WordCache& cache) const;

  std::vector<Normalizer> normalizers_;
  PreTokenizers words_;
  std::unique_ptr<WordModel> model_;
  std::vector<Decoder> decoders_;
  std::string between_;                       // inserted between the pieces of a decoded text
  AddedTokens in_text_, in_normal_;           // found before and after normalisation, respectively
  std::map<std::int32_t, AddedToken> added_;  // by token
  TextMap<std::int32_t> added_tokens_;        // by content
  Templates templates_;
  mutable std::mutex seen_mutex_;
  mutable WordCache seen_;
};

}  // namespace xtape
