/// Packing of operands for products in register tiles.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "kernels/math/block_lanes.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/products/gemm.hpp"
#include "kernels/products/tile_formats.hpp"
#include "kernels/products/tile_loops.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

/// Packs full squares of consecutive parts, transposed in registers. The rows of a square are `row` elements apart.
/// Each row contains parts of contiguous lines, or a line of contiguous terms.
template <class F, bool lines_run, class N>
void turn_squares(const N* from, std::int64_t row, std::int64_t term, std::int64_t squares, typename F::Part* to,
                  std::int64_t to_part, std::int64_t to_row) {
  using Part = typename F::Part;
  constexpr std::int64_t side = xsimd::batch<Part>::size, line_elements = 64 / sizeof(N);
  constexpr std::integral_constant<std::int64_t, side> count;
  using Loose = typename Register<Part, side>::loose;
  const std::int64_t next = lines_run ? side * row : side * F::terms;
  for (std::int64_t square = 0; square < squares; ++square, from += next, to += side * to_part) {
    typename Register<Part, side>::type rows[side];
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < side; ++k) {
      alignas(64) Part read[side];
      if (lines_run)
        F::along_lines(from + k * row, term, count, read);
      else
        F::along_terms(from + k * row, count, read);
      rows[k] = *reinterpret_cast<const Loose*>(read);
    }
    if (!lines_run && square * next % line_elements == 0)  // processors do not prefetch at large strides
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < side; ++k)
        for (std::int64_t j = 0; j < next; j += line_elements) __builtin_prefetch(from + (side + k) * row + j, 0, 2);
    transpose_square<Part, side>(rows);
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < side; ++k) *reinterpret_cast<Loose*>(to + k * to_row) = rows[k];
  }
}

/// Packs `lines` lines of `terms` terms. Part `p` of line `i` goes to `to[i * to_line + p * to_part]`. One of the last
/// two strides is 1.
template <class F, class N>
#ifndef __clang__
[[gnu::noclone]]  // its code is large
#endif
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
    const auto copy = [&](std::int64_t first, std::int64_t last, auto count) __attribute__((always_inline)) {
      for (std::int64_t part = first; part < last; ++part)
        F::along_lines(at(0, part), from.term, count, to + part * to_part);
    };
    if (lines == panel) {
      copy(0, whole, panel);  // loads and stores instead of a loop
    } else if (to_part <= one_register && from.term >= one_register) {
      // Full registers: the next part overwrites the excess.
      copy(0, whole - 1, one_register);
      copy(std::max<std::int64_t>(0, whole - 1), whole, lines);
    } else {
      copy(0, whole, lines);
    }
  } else if (terms_run && to_part == 1) {
    for (std::int64_t i = 0; i < lines; ++i) F::along_terms(at(i, 0), whole, to + i * to_line);
  } else {
    // Squares of parts, transposed in registers. The terms of `from` are read along one side of a square, unless its
    // lines are contiguous. Parts beyond the last are not stored.
    constexpr std::int64_t side = xsimd::batch<Part>::size;
    using Row = typename Register<Part, side>::type;
    using Loose = typename Register<Part, side>::loose;
    const bool turns = lines_run != (to_line == 1);
    const std::int64_t step = to_line == 1 ? to_part : to_line;
    const auto square = [&](std::int64_t i, std::int64_t part, std::int64_t height, std::int64_t width)
        __attribute__((always_inline)) {
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
    for (std::int64_t i = 0; i < lines; i += side) {
      const std::int64_t height = std::min(side, lines - i);
      std::int64_t part = 0;
      if (turns && height == side && (lines_run || terms_run)) {
        part = whole / side * side;
        Part* corner = to + i * to_line;
        if (lines_run)
          turn_squares<F, true>(at(i, 0), F::terms * from.term, from.term, part / side, corner, to_part, step);
        else
          turn_squares<F, false>(at(i, 0), from.line, from.term, part / side, corner, to_part, step);
      }
      for (; part < whole; part += side) square(i, part, height, std::min(side, whole - part));
    }
  }
  if (whole * F::terms < terms)
    for (std::int64_t i = 0; i < lines; ++i)
      to[i * to_line + whole * to_part] = F::part(at(i, whole), from.term, terms - whole * F::terms);
}

/// Loads a register of `width` elements that are `step` positions apart, 1 or 2 (the windows of a convolution with
/// stride 2).
template <class Part, std::size_t width>
[[gnu::always_inline]] inline auto load_steps(const Part* from, std::int64_t step) {
  using Loose = typename Register<Part, width>::loose;
  typename Register<Part, width>::type first = *reinterpret_cast<const Loose*>(from);
  if (step == 1) return first;
  // The second register ends with the last element, so that nothing beyond it is read.
  const typename Register<Part, width>::type second = *reinterpret_cast<const Loose*>(from + width - 1);
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return __builtin_shufflevector(first, second, (2 * i < width ? 2 * i : 2 * i + 1)...);
  }
  (std::make_index_sequence<width>{});
}

/// Returns the distance between neighbours among the first `count` positions in `places`, or 0 if load_steps cannot
/// load these positions. `left` is the number of positions in `places`.
inline std::int64_t step_of(const std::int64_t* places, std::int64_t count, std::int64_t left) {
  if (left < count) return 0;
  const std::int64_t step = places[1] - places[0];
  for (std::int64_t i = 1; i < count; ++i)
    if (places[i] != places[i - 1] + step) return 0;
  return step == 1 || step == 2 ? step : 0;
}

/// Packs n terms of n lines. The terms are `step` positions apart.
template <class Part, std::size_t n>
[[gnu::always_inline]] inline void pack_square(const Part* from, const std::int64_t* lines, std::int64_t step, Part* to,
                                               std::int64_t panel) {
  typename Register<Part, n>::type rows[n];
  for (std::size_t k = 0; k < n; ++k) rows[k] = load_steps<Part, n>(from + lines[k], step);
  transpose_square<Part, n>(rows);
  for (std::size_t k = 0; k < n; ++k, to += panel) *reinterpret_cast<typename Register<Part, n>::loose*>(to) = rows[k];
}

/// Packs `count` terms of `columns` lines. The term at terms[t] of the line at lines[i] goes to `to[t * panel + i]`. If
/// lines or terms are one or two elements apart, whole or half registers are read.
template <class Part>
void pack_gathered(const Part* from, const std::int64_t* lines, std::int64_t columns, const std::int64_t* terms,
                   std::int64_t count, Part* to, std::int64_t panel) {
  constexpr auto width = static_cast<std::int64_t>(xsimd::batch<Part>::size),
                 half = std::max<std::int64_t>(2, width / 2);
  using Loose = typename Register<Part, width>::loose;
  using LooseHalf = typename Register<Part, half>::loose;
  for (std::int64_t i = 0; i < columns; i += width) {
    const bool whole = columns - i >= width;
    const std::int64_t step = step_of(lines + i, width, columns - i);
    const std::int64_t low = step_of(lines + i, half, columns - i),
                       high = step_of(lines + i + half, half, columns - i - half);
    for (std::int64_t t = 0; t < count;) {
      Part* place = to + t * panel + i;
      const Part* term = from + terms[t];
      const bool across = whole && low == 0;  // registers hold terms
      const std::int64_t terms_step = across ? step_of(terms + t, width, count - t) : 0;
      const std::int64_t half_step = across && terms_step == 0 ? step_of(terms + t, half, count - t) : 0;
      if (step != 0) {
        *reinterpret_cast<Loose*>(place) = load_steps<Part, width>(term + lines[i], step);
        ++t;
      } else if (low != 0 && high != 0) {
        *reinterpret_cast<LooseHalf*>(place) = load_steps<Part, half>(term + lines[i], low);
        *reinterpret_cast<LooseHalf*>(place + half) = load_steps<Part, half>(term + lines[i + half], high);
        ++t;
      } else if (terms_step != 0) {
        pack_square<Part, width>(term, lines + i, terms_step, place, panel);
        t += width;
      } else if (half_step != 0) {
        for (std::int64_t k = 0; k < width; k += half)
          pack_square<Part, half>(term, lines + i + k, half_step, place + k, panel);
        t += half;
      } else {
        for (std::int64_t k = 0; k < std::min(columns - i, width); ++k) place[k] = term[lines[i + k]];
        ++t;
      }
    }
  }
}

/// Rows of a product, divided into bands of at most tile_rows rows. The heights of bands differ by at most one row.
struct Bands {
  std::int64_t rows, count, least_height, higher;  ///< The first `higher` bands are one row higher.

  explicit Bands(std::int64_t m) : rows(m), count(ceiling(m, tile_rows)), least_height(m / count), higher(m % count) {}
  std::int64_t top_of(std::int64_t band) const { return band * least_height + std::min(band, higher); }
  std::int64_t height_of(std::int64_t band) const { return top_of(band + 1) - top_of(band); }
};

/// Packs bands [first, finish) of an operand with adjacent rows. Part `p` of row `i` of a band goes to `to[p *
/// tile_rows + i]`. The next band begins `to_band` positions later. `from` is the first term of row 0.
template <class F, class N>
void pack_bands(const N* from, std::int64_t term, std::int64_t parts, const Bands& bands, std::int64_t first,
                std::int64_t finish, typename F::Part* to, std::int64_t to_band) {
  constexpr std::int64_t width = xsimd::batch<typename F::Part>::size;
  constexpr std::int64_t together = 8;  // parts per pass, because bands share cache lines
  constexpr std::integral_constant<std::int64_t, ceiling(tile_rows, width) * width> registers;
  for (std::int64_t part = 0; part < parts; part += together)
    for (std::int64_t band = first; band < finish; ++band) {
      const std::int64_t top = bands.top_of(band), end = std::min(parts, part + together);
      // Full registers: the next part overwrites the excess.
      const std::int64_t whole = top + registers <= bands.rows ? std::min(end, parts - 1) : part;
      const N* row = from + part * term + top;
      typename F::Part* place = to + (band - first) * to_band + part * tile_rows;
      for (std::int64_t p = part; p < whole; ++p, row += term, place += tile_rows) {
        __builtin_prefetch(row + together * term, 0, 3);  // processors do not prefetch at large strides
        F::along_lines(row, term, registers, place);
      }
      for (std::int64_t p = whole; p < end; ++p, row += term, place += tile_rows)
        F::along_lines(row, term, bands.height_of(band), place);
    }
}

/// Writes the elements first, first + step … of an operand as floats. N is bfloat16, float16, int8 or the struct of a
/// block.
template <class N>
void widen_terms(const void* operand, std::int64_t first, std::int64_t step, std::int64_t count, float* to) {
  if constexpr (is_block_struct<N>) {
    if (step == 1) return widen_blocks<N>(operand, first, count, to);
    for (std::int64_t k = 0; k < count; ++k) widen_blocks<N>(operand, first + k * step, 1, to + k);
  } else {
    const N* from = static_cast<const N*>(operand) + first;
    if (step == 1) return Plain<float>::along_terms(from, count, to);
    for (std::int64_t k = 0; k < count; ++k) to[k] = static_cast<float>(from[k * step]);
  }
}

/// Converts numbers of a narrow operand to floats piece by piece, then calls pack_lines. This avoids further instances
/// of pack_lines, whose code is large. Element `start` is the first term of line 0.
template <class F, class N>
void pack_widened(const void* operand, std::int64_t start, std::int64_t line_step, std::int64_t term_step,
                  std::int64_t lines, std::int64_t terms, typename F::Part* to, std::int64_t to_line,
                  std::int64_t to_part) {
  constexpr std::int64_t most_lines = 64, most_terms = 64;
  alignas(64) float piece[most_lines * most_terms];
  const bool lines_run = line_step == 1;
  for (std::int64_t term = 0; term < terms; term += most_terms)
    for (std::int64_t line = 0; line < lines; line += most_lines) {
      const std::int64_t height = std::min(most_lines, lines - line), width = std::min(most_terms, terms - term);
      const std::int64_t corner = start + line * line_step + term * term_step;
      const std::int64_t rows = lines_run ? width : height, row = lines_run ? term_step : line_step;
      const std::int64_t columns = lines_run ? height : width, column = lines_run ? line_step : term_step;
      for (std::int64_t i = 0; i < rows; ++i)
        widen_terms<N>(operand, corner + i * row, column, columns, piece + i * columns);
      const Lines<float> widened{piece, lines_run ? 1 : columns, lines_run ? columns : 1};
      pack_lines<F>(widened, height, width, to + line * to_line + term / F::terms * to_part, to_line, to_part);
    }
}

/// pack_lines and pack_bands for an operand, from its element `start` on. Only rows that tiles may read in place are
/// packed in bands.
template <class F>
struct Packing {
  using Part = typename F::Part;
  void (*lines)(const void* operand, std::int64_t start, std::int64_t line, std::int64_t term, std::int64_t lines,
                std::int64_t terms, Part* to, std::int64_t to_line, std::int64_t to_part);
  void (*bands)(const void* operand, std::int64_t start, std::int64_t term, std::int64_t parts, const Bands& bands,
                std::int64_t first, std::int64_t finish, Part* to, std::int64_t to_band);

  /// Returns the packing for elements of type N. If `widens`, it converts the elements to floats first.
  template <class N, bool widens = false>
  static Packing of() {
    return {[](const void* operand, std::int64_t start, std::int64_t line, std::int64_t term, std::int64_t lines,
               std::int64_t terms, Part* to, std::int64_t to_line, std::int64_t to_part) {
              if constexpr (widens)
                pack_widened<F, N>(operand, start, line, term, lines, terms, to, to_line, to_part);
              else
                pack_lines<F>(Lines<N>{static_cast<const N*>(operand) + start, line, term}, lines, terms, to, to_line,
                              to_part);
            },
            [](const void* operand, std::int64_t start, std::int64_t term, std::int64_t parts, const Bands& bands,
               std::int64_t first, std::int64_t finish, Part* to, std::int64_t to_band) {
              if constexpr (widens)
                for (std::int64_t band = first; band < finish; ++band)
                  pack_widened<F, N>(operand, start + bands.top_of(band), 1, term, bands.height_of(band),
                                     parts * F::terms, to + (band - first) * to_band, 1, tile_rows);
              else if constexpr (!F::must_pack)
                pack_bands<F>(static_cast<const N*>(operand) + start, term, parts, bands, first, finish, to, to_band);
            }};
  }
  /// Returns the packing for an operand. Its elements have the dtype `narrow` if given, or the number type of the
  /// format if not.
  static Packing of(std::optional<Dtype> narrow) {
    if constexpr (std::is_same_v<typename F::Number, float>) {
      if (narrow == Dtype::bfloat16) return of<bfloat16>();  // training steps store results in bfloat16
      if (narrow == Dtype::float16) return of<float16, true>();
      if (narrow == Dtype::int8) return of<std::int8_t, true>();
      if (narrow) return with_block(*narrow, [](auto block) { return of<decltype(block), true>(); });
    }
    return of<typename F::Number>();
  }
};

}  // namespace xtape
