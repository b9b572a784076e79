/// Shared code of convolutions by Winograd's algorithm, F(2, 3) along each axis (Winograd, 1980, Arithmetic complexity
/// of computations; Lavin and Gray, 2016, Fast algorithms for convolutional neural networks). Two neighbouring
/// results of three weights take four multiplications instead of six.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/math/lanes.hpp"
#include "kernels/products/product.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape::winograd {

using Lanes = xsimd::batch<float>;
constexpr auto width = static_cast<std::int64_t>(Lanes::size);

/// Rounds a number of channels up to complete lines of 64 bytes. Whether axes of a product merge depends on it, so it
/// must not depend on the width of a register.
inline std::int64_t whole_lines_of(std::int64_t count) {
  return round_up(count, std::int64_t{64 / sizeof(float)});
}

/// to[j, i] = from[i, j]. `from` has `rows` rows of `columns` contiguous elements.
[[gnu::noinline]] inline void transpose(const float* from, std::int64_t from_row, std::int64_t rows,
                                        std::int64_t columns, float* to, std::int64_t to_row) {
  using Loose = typename Register<float, Lanes::size>::loose;
  std::int64_t i = 0;
  for (; i + width <= rows; i += width) {
    std::int64_t j = 0;
    for (; j + width <= columns; j += width) {
      typename Register<float, Lanes::size>::type square[width];
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < width; ++k)
        square[k] = *reinterpret_cast<const Loose*>(from + (i + k) * from_row + j);
      transpose_square<float, Lanes::size>(square);
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < width; ++k) *reinterpret_cast<Loose*>(to + (j + k) * to_row + i) = square[k];
    }
    for (; j < columns; ++j)
      for (std::int64_t k = i; k < i + width; ++k) to[j * to_row + k] = from[k * from_row + j];
  }
  for (; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
}

/// Transforms four elements of the input: B' d.
[[gnu::always_inline]] inline std::array<Lanes, 4> input_line(const std::array<Lanes, 4>& d) {
  return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
}
/// Transforms three elements of the weight to four: G g.
[[gnu::always_inline]] inline std::array<Lanes, 4> weight_line(const Lanes& a, const Lanes& b, const Lanes& c) {
  const Lanes ends = (a + c) * Lanes(0.5F), middle = b * Lanes(0.5F);
  return {a, ends + middle, ends - middle, c};
}
/// Transforms four products to two results: A' m.
[[gnu::always_inline]] inline std::array<Lanes, 2> result_line(const std::array<Lanes, 4>& m) {
  return {m[0] + m[1] + m[2], m[1] - m[2] - m[3]};
}

/// The bytes of `count` floats, rounded up to complete cache lines, for scratch memory.
inline std::size_t floats(std::int64_t count) {
  return whole_lines(static_cast<std::size_t>(count) * sizeof(float));
}

/// The matrix products for each element of the tiles of a block, and of a smaller last block. Both read the fixed right
/// operand in the same prepared form.
struct BlockProducts {
  PlannedProduct block, last;

  BlockProducts() = default;
  /// `of(tiles, fixed)` returns the product of `tiles` tiles.
  template <class Of>
  BlockProducts(std::int64_t tiles, std::int64_t tiles_of_last, const Of& of)
      : block(of(tiles, 1)), last(of(tiles_of_last, 1)) {
    if (last.prepared_form != block.prepared_form) last = of(tiles_of_last, -1);
  }
  std::size_t scratch_bytes() const { return whole_lines(std::max(block.scratch_bytes, last.scratch_bytes)); }
  std::size_t prepared_bytes() const { return whole_lines(block.prepared_bytes); }
  /// Whether a product reads the weight itself, not only the result of `prepare`.
  bool reads_weight() const { return !block.prepare || !last.prepare; }
  void prepare(const float* weight, std::byte* prepared) const {
    if (block.prepare) block.prepare(weight, prepared);
  }
};

/// A convolution has these functions:
/// - `weight_bytes()`, the size of the result of `prepare(weight, prepared, scratch)`;
/// - `scratch_bytes()`, for `prepare` and for `run(x, prepared, y, scratch)`.
/// A fixed weight is prepared once, any other weight at each run.
template <class Convolution>
Kernel kernel_of(const Convolution& conv, const KernelForm& form) {
  const bool fixed = !form.fixed.empty() && form.fixed[1];
  Kernel kernel;
  kernel.scratch_bytes = (fixed ? 0 : conv.weight_bytes()) + conv.scratch_bytes();
  kernel.run = [conv, fixed](const KernelArguments& arguments) {
    auto* scratch = static_cast<std::byte*>(arguments.scratch);
    auto* prepared = static_cast<std::byte*>(arguments.prepared);
    if (!fixed) {
      prepared = scratch;
      scratch += conv.weight_bytes();
      conv.prepare(in<float>(arguments, 1), prepared, scratch);
    }
    conv.run(in<float>(arguments, 0), prepared, out<float>(arguments, 0), scratch);
  };
  if (fixed) {
    kernel.prepared_bytes = conv.weight_bytes();
    kernel.prepare = [conv](const KernelArguments& arguments) {
      conv.prepare(in<float>(arguments, 1), static_cast<std::byte*>(arguments.prepared),
                   static_cast<std::byte*>(arguments.scratch));
    };
    kernel.prepared_form = "winograd " + conv.weight_form();
  }
  return kernel;
}

/// Makes the convolution of x [b, c, h, w] with windows of 3 x 3 elements, F(2 x 2, 3 x 3).
Kernel make_square(const KernelForm& form);
/// Makes the convolution of x [b, c, l] with windows of 3 or more elements.
Kernel make_line(const KernelForm& form);

}  // namespace xtape::winograd
