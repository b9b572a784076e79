/// Byte-pair encoding: merges of two tokens into one, by rank.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "xtape/tokenizers.hpp"

namespace xtape {

/// A list of merges in order of rank (Sennrich, Haddow, Birch, 2016, "Neural Machine Translation of Rare Words with
/// Subword Units").
class Merges {
 public:
  /// Adds the merge of the next rank: `left` and `right` become `token`. Returns false if the pair already has a merge.
  bool add(std::int32_t left, std::int32_t right, std::int32_t token);
  /// Applies the merge of the lowest rank (the leftmost, if several are equal) until no merge applies. Takes O(n log n)
  /// time.
  void apply(Tokens& tokens) const;

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t token;
  };
  struct Mix {
    std::size_t operator()(std::uint64_t pair) const { return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15U >> 16; }
  };
  const Merge* find(std::int32_t left, std::int32_t right) const;

  std::unordered_map<std::uint64_t, Merge, Mix> merges_;
};

}  // namespace xtape
