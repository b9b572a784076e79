/// Compares arrays by their bits.
#pragma once

#include <cstring>

#include "xtape/array.hpp"

namespace xtape {

/// Returns whether two arrays have the same dtype, shape and bits. NaN with the same bits are equal; 0 and -0 are not.
inline bool same_bits(const ArrayView& a, const ArrayView& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Array first(a), second(b);  // dense copies, because views may have strides
  return first.bytes() == 0 || std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}

}  // namespace xtape
