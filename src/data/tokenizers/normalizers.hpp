/// The normalizers and decoders of a tokenizer.json.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_text.hpp"

namespace xtape {

// The normalisation that sentencepiece compiles into a model (precompiled_charsmap).

/// Maps texts to their replacements. The data structure is a double-array trie (Aoe, 1989) in the layout of
/// Darts-clone.
class Charsmap {
 public:
  /// Reads the map from base64, the form in tokenizer.json. Throws Error if the text is not base64, or if it is shorter
  /// than its trie should be.
  explicit Charsmap(const std::string& base64);
  /// Returns `text`, which must be UTF-8, with all replacements. A grapheme cluster of less than 6 bytes is replaced as
  /// a whole. Otherwise its characters are replaced one by one. Throws Error if the trie refers outside itself.
  std::string applied(const std::string& text) const;

 private:
  /// Returns the replacement of the shortest entry that is a prefix of `key`, or null if there is none.
  const char* replacement(std::string_view key) const;
  std::uint32_t unit(std::size_t at) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;  // the replacements, each ending with NUL
};

// The normalizers of a tokenizer.json. They change a text before it is split into words.

/// Converts one UTF-8 text to another. Sets `first` to false if the new text begins with a character that does not stem
/// from the first character of the old text.
using Normalizer = std::function<std::string(const std::string&, bool& first)>;

/// Returns the normalizers of the entry "normalizer" in the order of their application. Throws FileError at an
/// unsupported normalizer.
std::vector<Normalizer> read_normalizers(const JsonNode& node);

// The decoders of a tokenizer.json, which turn the pieces of tokens into a text.

/// Changes the pieces of a text. After the last decoder, the pieces are joined.
using Decoder = std::function<void(std::vector<std::string>&)>;

/// Returns the decoders of the entry "decoder" in the order of their application. Throws FileError at an unsupported
/// decoder.
std::vector<Decoder> read_decoders(const JsonNode& node);
/// Returns the decoder of pieces that are written with byte symbols.
Decoder byte_decoder();

}  // namespace xtape
