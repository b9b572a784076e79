/// Byte-pair encoding: which two tokens become one, and in which order.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "xtape/tokenizers.hpp"

namespace xtape {

/// A list of merges (Sennrich, Haddow, Birch, 2016), the first ones first.
class Merges {
 public:
  /// The next merge: `left` and `right` become `token`. False where they have one already.
  bool add(std::int32_t left, std::int32_t right, std::int32_t token);
  /// Makes the earliest merge that there is, the leftmost of equals, until there is none: O(n log n).
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
