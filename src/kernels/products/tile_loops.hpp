/// The loops of products in register tiles: one tile, and packing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "lanes.hpp"
#include "products/tile_formats.hpp"

namespace xtape {

inline constexpr bool many_registers = xsimd::batch<float>::size >= 16;  // AVX-512 has 32, of 64 bytes
inline constexpr int tile_rows = many_registers ? 14 : 6;  ///< Two registers per row, two for b, one or two for a.
inline constexpr int row_registers = 2;                    ///< Registers per row of a tile.

/// The columns of a panel: as wide as a tile.
template <class F>
constexpr std::int64_t panel_width = row_registers* static_cast<std::int64_t>(xsimd::batch<typename F::Part>::size);

/// Computes a tile of c, `rows` rows of `registers` registers, over `parts` parts of one panel of b; adds to c if
/// `add`.
template <class F, int rows, int registers>
void multiply(std::int64_t parts, const typename F::Part* a, std::int64_t a_row, std::int64_t a_part,
              const typename F::Part* panel, typename F::Sum* c, std::int64_t c_row, bool add) {
  using Parts = xsimd::batch<typename F::Part>;
  using Sums = xsimd::batch<typename F::Sum>;
  constexpr auto width = static_cast<std::int64_t>(Parts::size);
  Sums sums[rows][registers];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
    for (int r = 0; r < registers; ++r) sums[i][r] = Sums(typename F::Sum{});
  if (!many_registers && add)  // c is needed at the end
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      __builtin_prefetch(c + i * c_row, 1, 3);
      __builtin_prefetch(c + i * c_row + registers * width - 1, 1, 3);
    }
  for (std::int64_t k = 0; k < parts; ++k) {
    Parts columns[registers];
    for (int r = 0; r < registers; ++r) columns[r] = Parts::load_aligned(panel + k * panel_width<F> + r * width);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Parts scalar(a[i * a_row + k * a_part]);
      for (int r = 0; r < registers; ++r) sums[i][r] = F::add_product(sums[i][r], scalar, columns[r]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
    for (int r = 0; r < registers; ++r) {
      auto* to = c + i * c_row + r * width;
      (add ? Sums::load_unaligned(to) + sums[i][r] : sums[i][r]).store_unaligned(to);
    }
}

template <class F>
using Multiply = void (*)(std::int64_t, const typename F::Part*, std::int64_t, std::int64_t, const typename F::Part*,
                          typename F::Sum*, std::int64_t, bool);

/// The instances of multiply for 1, 2, … rows.
template <class F, int registers, int... i>
constexpr std::array<Multiply<F>, sizeof...(i)> by_rows(std::integer_sequence<int, i...> /*rows*/) {
  return {multiply<F, i + 1, registers>...};
}
template <class F, int registers>
constexpr std::array<Multiply<F>, tile_rows> multiply_rows =
    by_rows<F, registers>(std::make_integer_sequence<int, tile_rows>{});

/// Packs `lines` lines of `terms` terms: part `p` of line `i` goes to `to[i * to_line + p * to_part]`. One of the last
/// two strides is 1.
template <class F, class N>
void pack_lines(const Lines<N>& from, std::int64_t lines, std::int64_t terms, typename F::Part* to,
                std::int64_t to_line, std::int64_t to_part) {
  using Part = typename F::Part;
  const std::int64_t whole = terms / F::terms;  // parts with all their terms
  const bool lines_run = from.line == 1, terms_run = from.term == 1;
  const auto at = [&](std::int64_t line, std::int64_t part) {
    return from.data + line * from.line + part * F::terms * from.term;
  };
  if (lines_run && to_line == 1) {
    constexpr std::integral_constant<std::int64_t, panel_width<F>> panel;
    constexpr std::integral_constant<std::int64_t, xsimd::batch<Part>::size> one_register;
    const auto copy = [&](std::int64_t first, std::int64_t last, auto count) {
      for (std::int64_t part = first; part < last; ++part)
        F::along_lines(at(0, part), from.term, count, to + part * to_part);
    };
    if (lines == panel) {
      copy(0, whole, panel);  // loads and stores instead of a loop
    } else if (to_part <= one_register && from.term >= one_register) {
      // Whole registers: the next part overwrites what is too much.
      copy(0, whole - 1, one_register);
      copy(std::max<std::int64_t>(0, whole - 1), whole, lines);
    } else {
      copy(0, whole, lines);
    }
  } else if (terms_run && to_part == 1) {
    for (std::int64_t i = 0; i < lines; ++i) F::along_terms(at(i, 0), whole, to + i * to_line);
  } else {
    // Squares of parts, transposed in registers. One side of `from` is read along its terms unless its lines are
    // contiguous; parts beyond the last are not stored.
    constexpr std::int64_t side = xsimd::batch<Part>::size;
    using Row = typename Register<Part, side>::type;
    using Loose = typename Register<Part, side>::loose;
    const bool turns = lines_run != (to_line == 1);
    const std::int64_t step = to_line == 1 ? to_part : to_line;
    const auto whole_square = [&](std::int64_t i, std::int64_t part) {
      constexpr auto line_elements = static_cast<std::int64_t>(64 / sizeof(N));
      constexpr std::integral_constant<std::int64_t, side> count;
      Row rows[side];
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < side; ++k) {
        alignas(64) Part row[side];
        if (lines_run) {
          F::along_lines(at(i, part + k), from.term, count, row);
        } else {
          F::along_terms(at(i + k, part), count, row);
          // Processors do not foresee steps from line to line.
          for (std::int64_t j = 0; j < side * F::terms; j += line_elements)
            __builtin_prefetch(at(i + side + k, part) + j, 0, 2);
        }
        rows[k] = *reinterpret_cast<const Loose*>(row);
      }
      transpose_square<Part, side>(rows);
      Part* corner = to + i * to_line + part * to_part;
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < side; ++k) *reinterpret_cast<Loose*>(corner + k * step) = rows[k];
    };
    const auto square = [&](std::int64_t i, std::int64_t part, std::int64_t height, std::int64_t width) {
      const std::int64_t read = lines_run ? width : height, length = lines_run ? height : width;
      Row rows[side] = {};
      for (std::int64_t k = 0; k < read; ++k) {
        alignas(64) Part row[side] = {};
        if (lines_run)
          F::along_lines(at(i, part + k), from.term, length, row);
        else if (terms_run)
          F::along_terms(at(i + k, part), length, row);
        else
          for (std::int64_t j = 0; j < length; ++j) row[j] = F::part(at(i + k, part + j), from.term, F::terms);
        rows[k] = *reinterpret_cast<const Loose*>(row);
      }
      if (turns) transpose_square<Part, side>(rows);
      const std::int64_t outer = to_line == 1 ? width : height, inner = to_line == 1 ? height : width;
      Part* corner = to + i * to_line + part * to_part;
      for (std::int64_t k = 0; k < outer; ++k)
        std::memcpy(corner + k * step, &rows[k], static_cast<std::size_t>(inner) * sizeof(Part));
    };
    for (std::int64_t i = 0; i < lines; i += side)
      for (std::int64_t part = 0; part < whole; part += side) {
        const std::int64_t height = std::min(side, lines - i), width = std::min(side, whole - part);
        if (turns && (lines_run || terms_run) && height == side && width == side)
          whole_square(i, part);
        else
          square(i, part, height, width);
      }
  }
  if (whole * F::terms < terms)
    for (std::int64_t i = 0; i < lines; ++i)
      to[i * to_line + whole * to_part] = F::part(at(i, whole), from.term, terms - whole * F::terms);
}

}  // namespace xtape
