// Packs columns of a matrix in blocks as bytes.
#include "kernels/products/byte_panels.hpp"

#include <algorithm>
#include <utility>

#include "kernels/math/block_lanes.hpp"

namespace xtape {

namespace {
/// Writes 32 terms of columns to a panel. `words`, which are `apart` elements apart, have four terms of each column.
template <std::int64_t columns>
[[gnu::always_inline]] inline void put_words(const std::uint32_t* words, std::int64_t apart, bool in_eights,
                                             std::byte* to) {
  if (may_have_byte_unit && in_eights) {
    for (int k = 0; k < 8; k += 2, words += 2 * apart) {
      std::uint32_t both[2 * columns];
      for (std::int64_t j = 0; j < columns; ++j) {
        both[2 * j] = words[j];
        both[2 * j + 1] = words[apart + j];
      }
      std::memcpy(to + k * panel_columns * 4, both, sizeof both);
    }
    return;
  }
  for (int k = 0; k < 8; ++k) std::memcpy(to + k * panel_columns * 4, words + k * apart, 4 * columns);
}

/// Writes the bytes of a group of 8 columns, each less `origin`.
template <class B, int odd>
void pack_group(const BlockBytes<B> (&blocks)[8], std::int64_t n, const PanelSource& from, std::byte* to) {
  Register<std::uint32_t, 8>::type rows[8];
  for (int j = 0; j < 8; ++j)
    rows[j] = reinterpret_cast<Register<std::uint32_t, 8>::type>(group_of<B, odd>(blocks[j], n) - from.origin);
  transpose_square<std::uint32_t, 8>(rows);
  put_words<8>(reinterpret_cast<const std::uint32_t*>(rows), 8, from.in_eights, to);
}

/// Packs block `b` of 8 columns, of which the first is column `at` of the panel.
template <class B>
void pack_block(const B* const (&columns)[8], std::int64_t b, std::int64_t at, const PanelSource& from,
                const Panel& panel) {
  const std::int64_t first = b * block_numbers<B> / group_numbers;  // the group
  [&]<std::size_t... j>(std::index_sequence<j...>) {
    const BlockBytes<B> blocks[] = {BlockBytes<B>(columns[j][b])...};
    constexpr std::int64_t group_bytes = group_numbers * panel_columns;
    for (std::int64_t n = 0; n < block_pairs<B>; ++n) {
      pack_group<B, 0>(blocks, n, from, panel.bytes + (first + 2 * n) * group_bytes + at * 4);
      if constexpr (group_numbers < block_numbers<B>)
        pack_group<B, 1>(blocks, n, from, panel.bytes + (first + 2 * n + 1) * group_bytes + at * 4);
    }
  }
  (std::make_index_sequence<8>{});
  constexpr std::int64_t parts = block_numbers<B> / part_numbers<B>;
  for (std::int64_t j = 0; j < 8; ++j) {
    const B& block = columns[j][b];
    float* scales = panel.scales + b * parts * panel_columns + at + j;
    if constexpr (parts == 1) {
      *scales = float_of(block.scale);
    } else if constexpr (has_minima<B>) {
      const PartFloats floats(block);
      float* minima = panel.minima + b * parts * panel_columns + at + j;
      for (std::int64_t i = 0; i < parts; ++i) scales[i * panel_columns] = floats.scales[i];
      for (std::int64_t i = 0; i < parts; ++i) minima[i * panel_columns] = floats.minima[i];
    } else {
      const SixteenScales floats(block);
      for (std::int64_t i = 0; i < parts; ++i) scales[i * panel_columns] = floats.scales[i];
    }
  }
}

/// Packs a panel of columns that are lines of blocks.
template <class B>
void pack_along(const PanelSource& from, std::int64_t first, std::int64_t /*panels*/, std::byte* memory) {
  const Panel panel(memory, from.terms, part_numbers<B>);
  for (std::int64_t at = 0; at < panel_columns; at += 8) {
    const B* columns[8];
    for (std::int64_t j = 0; j < 8; ++j)  // the last column again, if there are no more
      columns[j] =
          reinterpret_cast<const B*>(from.blocks + std::min(first + at + j, from.columns - 1) * from.line_bytes);
    for (std::int64_t b = 0; b < from.terms / block_numbers<B>; ++b) {
      // The processor does not foresee reads of so many short columns.
      constexpr auto block_bytes = static_cast<std::int64_t>(sizeof(B)), cache_line = std::int64_t{64};
      for (const B* column : columns)
        for (std::int64_t byte = 0; byte < block_bytes; byte += cache_line)
          will_read(column, 8 * from.line_bytes + b * block_bytes + byte);
      pack_block<B>(columns, b, at, from, panel);
    }
  }
}

/// 32 terms of up to 128 columns, each term from another line of blocks. Many columns at a time read whole cache lines.
struct Lines {
  static constexpr std::int64_t terms = group_numbers, group = group_numbers, groups = 4;
  alignas(64) float numbers[terms][groups * group];
  std::uint32_t words[terms / 4][group];  ///< The bytes of four terms of the columns of a group.
  float scales[group];

  /// Rounds a group of columns, of which the first is column `first`.
  void round(std::int64_t first, std::uint32_t flipped) {
    std::uint32_t largest[group] = {};
    for (const auto& line : numbers)
#pragma omp simd
      for (std::int64_t j = 0; j < group; ++j) largest[j] = std::max(largest[j], magnitude_bits(line[first + j]));
    float factors[group];
#pragma omp simd
    for (std::int64_t j = 0; j < group; ++j) {
      const ByteScale scale(largest[j]);
      scales[j] = scale.scale;
      factors[j] = scale.factor;
    }
    for (std::int64_t k = 0; k < terms; k += 4)
#pragma omp simd
      for (std::int64_t j = 0; j < group; ++j) {
        const auto byte = [&](std::int64_t t) { return rounded_bits(numbers[k + t][first + j], factors[j]) & 255U; };
        words[k / 4][j] = (byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24) ^ flipped;
      }
  }
};

/// Packs panels of columns that lie across the lines of blocks. `widen` is widen_blocks of the format.
[[maybe_unused]] void pack_across(const PanelSource& from, std::int64_t first, std::int64_t panels, std::byte* memory,
                                  void (*widen)(const void* blocks, std::int64_t first, std::int64_t count,
                                                float* to)) {
  constexpr std::int64_t part = Lines::terms;
  const std::int64_t terms = round_up(from.terms, part);
  const std::int64_t columns = std::min(panels * panel_columns, round_up(from.columns - first, Lines::group));
  const std::uint32_t flipped = (adds_four ? 0x80808080U : 0U) ^ (from.origin * 0x01010101U);
  Lines lines;
  for (std::int64_t term = 0; term < terms; term += part) {
    for (std::int64_t k = 0; k < part; ++k) {
      const std::byte* line = from.blocks + (term + k) * from.line_bytes;
      if (term + k >= from.terms) {
        std::fill_n(lines.numbers[k], columns, 0.0F);
        continue;
      }
      // The processor does not foresee reads of so many lines.
      for (std::int64_t column = first; column <= first + columns; column += Lines::group)
        will_read(line, part * from.line_bytes + column * from.bytes_of_256 / 256);
      widen(line, first, columns, lines.numbers[k]);
    }
    for (std::int64_t column = 0; column < columns; column += Lines::group) {
      lines.round(column, flipped);
      for (std::int64_t at = 0; at < Lines::group; at += panel_columns) {
        const Panel panel(memory + (column + at) / panel_columns * Panel::size(terms, part), terms, part);
        put_words<panel_columns>(lines.words[0] + at, Lines::group, from.in_eights, panel.bytes + term * panel_columns);
        std::copy_n(lines.scales + at, panel_columns, panel.scales + term / part * panel_columns);
      }
    }
  }
}
}  // namespace

PanelPacking panel_packing(Dtype dtype, bool across) {
  return with_block(dtype, [&](auto block) -> PanelPacking {
    using B = decltype(block);
    constexpr std::int64_t group_panels = Lines::group / panel_columns;
    static_assert(Lines::group % panel_columns == 0);
    if constexpr (has_fma)
      return across ? PanelPacking{group_panels, Lines::groups * group_panels,
                                   [](const PanelSource& from, std::int64_t first, std::int64_t panels,
                                      std::byte* memory) { pack_across(from, first, panels, memory, widen_blocks<B>); }}
                    : PanelPacking{1, 1, pack_along<B>};
    else
      return {};  // bytes_suit is false
  });
}

}  // namespace xtape
