/// A dense array, viewed with one of its axes in the middle.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// A dense array viewed as [outer, size, inner].
struct Middle {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  /// The view with axis `axis` of `shape` in the middle.
  static Middle around(const Shape& shape, std::size_t axis) {
    Middle result;
    for (std::size_t i = 0; i < shape.size(); ++i)
      (i < axis ? result.outer : i == axis ? result.size : result.inner) *= shape[i];
    return result;
  }
};

}  // namespace xtape
