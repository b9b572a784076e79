/// The normalisation that sentencepiece compiles into a model (precompiled_charsmap).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xtape {

/// A double-array trie (Aoe, 1989; the layout is that of Darts-clone) from texts to their replacements.
class Charsmap {
 public:
  /// From base64, as tokenizer.json has it. Throws Error if it is not base64 or its sizes do not fit.
  explicit Charsmap(const std::string& base64);
  /// `text`, which must be UTF-8, with replacements: for a grapheme cluster of less than 6 bytes as a whole, otherwise
  /// for its characters. Throws Error if the trie refers outside itself.
  std::string applied(const std::string& text) const;

 private:
  /// The replacement of the shortest entry that `key` begins with; null if there is none.
  const char* replacement(std::string_view key) const;
  std::uint32_t unit(std::size_t at) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;  // the replacements, each followed by NUL
};

}  // namespace xtape
