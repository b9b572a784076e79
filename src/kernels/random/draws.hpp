/// Kernels that draw random numbers, and the identity of a draw.
#pragma once

#include <cstdint>

#include "kernels/table/kernel_form.hpp"

namespace xtape {

// The identity of a random draw.

/// The key and step of a random draw. A random number is a function of the key, the step and the element's index.
struct RandomStream {
  std::uint64_t key = 0;
  std::uint64_t step = 0;

  /// The key of a site for a seed.
  static std::uint64_t key_of(std::uint64_t seed, std::uint64_t site) { return mixed(mixed(seed) + site); }

 private:
  /// The finaliser of splitmix64 (Steele et al., 2014): every bit of the input affects every bit of the output.
  static std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
};

// Checks of the numbers that describe distributions. Compiled once for all processors.

/// Throws Error: the logits of this row, of rows of the shape `rows`, contain NaN or infinity.
[[noreturn]] void refuse_logits(std::int64_t row, const Shape& rows);

/// Returns the kernel of checked_weights. Input and output are dense.
Kernel make_checked_weights(const KernelForm& form);

// Kernels that draw random numbers.

/// Dropout of elements [first, first + count) of an array: x * scale if the element's Bernoulli draw with probability
/// `keep` is true, otherwise 0. `x` and `out` point to element `first`. `out` may be `x`.
template <class T>
void drop(const RandomStream& stream, std::int64_t first, std::int64_t count, double keep, T scale, const T* x, T* out);
TileFunction make_dropout(const KernelForm& form);

}  // namespace xtape
