/// How far apart arrays are.
#pragma once

#include <cmath>

#include "xtape/array.hpp"

namespace xtape {

/// Returns the norm of the difference of two float32 arrays, relative to the norm of the second one if this is not 0.
inline double relative_distance(const Array& a, const Array& b) {
  double apart = 0, size = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = a.as<float>()[i], y = b.as<float>()[i];
    apart += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(size == 0 ? apart : apart / size);
}

}  // namespace xtape
