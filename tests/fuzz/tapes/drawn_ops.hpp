/// The hints for drawing calls of ops (see `Hint`), by kind of op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drawer.hpp"

namespace xtape::fuzz {

using List = std::vector<std::int64_t>;
using Drawn = std::optional<Draft>;
using Hints = std::map<std::string, Hint>;

inline std::int64_t rank_of(Drawer& d, Ref x) {
  return static_cast<std::int64_t>(d.shape(x).size());
}

inline std::size_t normal(Drawer& d, Ref x, std::int64_t axis) {
  return normal_axis(axis, d.shape(x).size());
}

Hints hints_of_shapes();
Hints hints_of_products();  ///< Also of losses and normalisations.
Hints hints_of_linear_algebra();
Hints hints_of_indexing();
Hints hints_of_channels();  ///< Convolutions, pooling, norms of channels.
Hints hints_of_functions();
Hints hints_of_sequences();  ///< Losses of sequences.

}  // namespace xtape::fuzz
