/// Dense arrays viewed with one axis in the middle.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// A dense array viewed as [outer, size, inner].
struct Middle {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  /// The view with axis `axis` of `shape` in the middle. Negative axes count from the back.
  static Middle around(const Shape& shape, std::int64_t axis) {
    const std::size_t at = normal_axis(axis, shape.size());
    Middle result;
    for (std::size_t i = 0; i < shape.size(); ++i)
      (i < at ? result.outer : i == at ? result.size : result.inner) *= shape[i];
    return result;
  }
};

}  // namespace xtape
