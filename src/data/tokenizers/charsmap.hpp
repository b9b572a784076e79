/// The normalisation that sentencepiece compiles into a model (precompiled_charsmap).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xtape {

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

}  // namespace xtape
