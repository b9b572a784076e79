/// Kernels that draw random numbers.
#pragma once

#include <cstdint>

#include "kernels/table/kernel_form.hpp"
#include "kernels/random/random_stream.hpp"

namespace xtape {

/// Dropout of elements [first, first + count) of an array: x * scale if the element's Bernoulli draw with probability
/// `keep` is true, otherwise 0. `x` and `out` point to element `first`. `out` may be `x`.
template <class T>
void drop(const RandomStream& stream, std::int64_t first, std::int64_t count, double keep, T scale, const T* x,
          T* out);
TileFunction make_dropout(const KernelForm& form);

}  // namespace xtape
