/// Compares the values of two plays.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "differences.hpp"
#include "trial.hpp"

namespace xtape::fuzz {

using Result = std::optional<std::string>;

/// The first failure of `what`, called for every output of every play.
template <class What>
Result over_outputs(const Played& a, const Played& b, const What& what) {
  for (std::size_t play = 0; play < plays; ++play)
    for (std::size_t k = 0; k < a.values[play].size(); ++k)
      if (const Result found = what(play, k, a.values[play][k], b.values[play][k]))
        return "output " + std::to_string(k) + " of play " + std::to_string(play) + ": " + *found;
  return std::nullopt;
}

inline Result equal_bits(const Played& a, const Played& b, const std::string& first, const std::string& second) {
  return over_outputs(a, b, [&](std::size_t, std::size_t, const Array& x, const Array& y) -> Result {
    if (std::memcmp(x.data(), y.data(), x.bytes()) == 0) return std::nullopt;
    const auto difference = furthest(x, y, -1);
    if (!difference) return "the bits differ";
    return difference->described(first, second);
  });
}

}  // namespace xtape::fuzz
