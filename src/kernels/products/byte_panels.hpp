/// Columns of a matrix in blocks as bytes, for products of many rows. Four neighbouring terms of a column are in one
/// lane of a register, or in one lane of a row of the matrix unit's tiles. For SMMLA, eight are in two lanes.
#pragma once

#include "kernels/products/byte_products.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

constexpr int panel_registers = 2;
constexpr std::int64_t panel_columns = panel_registers * static_cast<std::int64_t>(Ints::size);

/// The memory of packed columns.
struct Panel {
  std::byte* bytes;  ///< [terms / 4, columns, 4] or [terms / 8, columns, 8]
  float* scales;     ///< [parts, columns]
  float* minima;     ///< [terms / 32, columns]

  Panel(std::byte* memory, std::int64_t terms, std::int64_t part)
      : bytes(memory),
        scales(reinterpret_cast<float*>(memory + terms * panel_columns)),
        minima(scales + terms / part * panel_columns) {}
  /// The columns from `column` on. `run`: the neighbouring terms of a column.
  Panel from(std::int64_t column, std::int64_t run) const {
    Panel columns = *this;
    columns.bytes += run * column;
    columns.scales += column;
    columns.minima += column;
    return columns;
  }
  static std::size_t size(std::int64_t terms, std::int64_t part) {
    return whole_lines(
        static_cast<std::size_t>(panel_columns * (terms + terms / part * static_cast<std::int64_t>(sizeof(float)) +
                                                  terms / group_numbers * static_cast<std::int64_t>(sizeof(float)))));
  }
};

/// A matrix in blocks, whose columns are packed.
struct PanelSource {
  const std::byte* blocks;
  std::int64_t columns, terms;
  std::int64_t line_bytes;    ///< From one line of blocks to the next.
  std::int64_t bytes_of_256;  ///< The bytes of 256 numbers.
  std::uint8_t origin;        ///< What the packed bytes lose.
  bool in_eights;             ///< Whether eight terms of a column are neighbours, not four.
};

/// How columns are packed.
struct PanelPacking {
  std::int64_t least, most;  ///< The numbers of panels that are packed together: multiples of `least` up to `most`.
  /// Packs so many panels, of which the first begins with column `first`, or those that there are.
  void (*pack)(const PanelSource& from, std::int64_t first, std::int64_t panels, std::byte* memory);
};
/// If the sums lie along the blocks, the bytes and scales are those of the blocks. If they lie across, 32 terms of a
/// column, each from another line of blocks, are rounded to bytes as the numbers of a row are, so the packed format is
/// that of Q8_0.
PanelPacking panel_packing(Dtype dtype, bool across);

}  // namespace xtape
