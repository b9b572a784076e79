/// The innermost loop of products in register tiles, for one tile.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/products/tile_formats.hpp"

namespace xtape {

inline constexpr bool large_caches = xsimd::batch<float>::size >= 16;  ///< As processors with AVX-512 have.
/// Two registers for each row, two for b, and one or two for a, or one for each row if tiles multiply by lanes.
inline constexpr int tile_rows = multiplies_by_lanes ? 8 : many_registers ? 14 : 6;
inline constexpr int row_registers = 2;          ///< Registers per row of a tile.
inline constexpr std::int64_t parts_ahead = 16;  ///< The prefetch distance of columns that are read in place.

/// The number of columns of a panel, which is the width of a tile.
template <class F>
constexpr std::int64_t panel_width = row_registers* static_cast<std::int64_t>(xsimd::batch<typename F::Part>::size);

/// How a tile reads the columns of b: from a packed panel, in place while packing them, or in place.
enum class Reading { packed, packs, in_place };

/// The columns of b that a tile multiplies: either a packed panel, which begins at the first position of `from`, or
/// columns in place.
template <class F>
struct Columns {
  std::array<const typename F::Part*, row_registers> from;  ///< The first part of the columns of each register.
  const std::int64_t* parts;  ///< The distances of the parts, and of parts_ahead further parts, from the first part.
  typename F::Part* packed;   ///< The panel to pack.
};

/// Computes a tile of c with `rows` rows of `registers` registers, over `parts` parts. Adds to c if `add`.
template <class F, int rows, int registers, Reading reading>
void multiply(std::int64_t parts, const typename F::Part* a, std::int64_t a_row, std::int64_t a_part,
              const Columns<F>& b, typename F::Sum* c, std::int64_t c_row, bool add) {
  using Parts = xsimd::batch<typename F::Part>;
  using Sums = xsimd::batch<typename F::Sum>;
  constexpr auto width = static_cast<std::int64_t>(Parts::size);
  Sums sums[rows][registers];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int r = 0; r < registers; ++r) sums[i][r] = Sums(typename F::Sum{});
  if (!large_caches && add)  // c is needed only at the end
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      __builtin_prefetch(c + i * c_row, 1, 3);
      __builtin_prefetch(c + i * c_row + registers * width - 1, 1, 3);
    }
  // Adds part k. left(i) has part k of row i in all lanes.
  const auto add_part = [&](std::int64_t k, const auto& left) __attribute__((always_inline)) {
    Parts columns[registers];
    if constexpr (reading == Reading::in_place) {
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) columns[r] = Parts::load_unaligned(b.from[r] + b.parts[k]);
    } else if constexpr (reading == Reading::packs) {
      // Processors do not prefetch at large strides.
      __builtin_prefetch(b.from[0] + b.parts[k + parts_ahead], 0, 3);
      __builtin_prefetch(b.from[registers - 1] + b.parts[k + parts_ahead] + width - 1, 0, 3);
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) {
        columns[r] = Parts::load_unaligned(b.from[r] + b.parts[k]);
        columns[r].store_aligned(b.packed + k * panel_width<F> + r * width);
      }
    } else {
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) columns[r] = Parts::load_aligned(b.from[0] + k * panel_width<F> + r * width);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Parts scalar = left(i);
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) sums[i][r] = F::add_product(sums[i][r], scalar, columns[r]);
    }
  };
  std::int64_t k = 0;
  if constexpr (multiplies_by_lanes)
    for (; a_part == 1 && k + width <= parts; k += width) {
      Parts lefts[rows];
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) lefts[i] = Parts::load_unaligned(a + i * a_row + k);
      [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
        (add_part(k + static_cast<std::int64_t>(lane), [&](int i) { return lane_of<lane>(lefts[i]); }), ...);
      }
      (std::make_index_sequence<Parts::size>{});
    }
  for (; k < parts; ++k) add_part(k, [&](int i) { return Parts(a[i * a_row + k * a_part]); });
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int r = 0; r < registers; ++r) {
      auto* to = c + i * c_row + r * width;
      (add ? Sums::load_unaligned(to) + sums[i][r] : sums[i][r]).store_unaligned(to);
    }
}

template <class F>
using Multiply = void (*)(std::int64_t, const typename F::Part*, std::int64_t, std::int64_t, const Columns<F>&,
                          typename F::Sum*, std::int64_t, bool);

/// The instances of multiply for 1, 2, … rows.
template <class F, int registers, Reading reading, int i>
constexpr Multiply<F> instance() {
  // Columns are read in place only if several bands share them. In this case, a band is at least half as high as a
  // tile.
  if constexpr (reading == Reading::in_place && i < tile_rows / 2)
    return nullptr;
  else
    return multiply<F, i, registers, reading>;
}
template <class F, int registers, Reading reading, int... i>
constexpr std::array<Multiply<F>, tile_rows> by_rows(std::integer_sequence<int, i...> /*rows*/) {
  return {instance<F, registers, reading, i + 1>()...};
}
template <class F, int registers, Reading reading = Reading::packed>
constexpr std::array<Multiply<F>, tile_rows> multiply_rows =
    by_rows<F, registers, reading>(std::make_integer_sequence<int, tile_rows>{});

/// Computes a tile of c with `go`, whose registers may be wider than the `columns` columns that c has there. Adds to c
/// if `add`.
template <class F>
[[gnu::always_inline]] inline void multiply_tile(Multiply<F> go, std::int64_t rows, std::int64_t columns,
                                                 std::int64_t parts, const typename F::Part* a, std::int64_t a_row,
                                                 std::int64_t a_part, const Columns<F>& b, typename F::Sum* c,
                                                 std::int64_t c_row, bool add) {
  constexpr std::int64_t width = panel_width<F>;
  if (columns == width / row_registers || columns >= width) return go(parts, a, a_row, a_part, b, c, c_row, add);
  typename F::Sum whole[tile_rows * width];
  go(parts, a, a_row, a_part, b, whole, width, false);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      typename F::Sum& to = c[i * c_row + j];
      to = add ? to + whole[i * width + j] : whole[i * width + j];
    }
}

}  // namespace xtape
