// Products of many rows in bytes by a matrix in blocks, whose columns are packed in panels.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/threads/threads.hpp"
#include "kernels/products/amx.hpp"
#include "kernels/products/byte_panels.hpp"

namespace xtape {

namespace {
constexpr std::int64_t lanes = Ints::size;
constexpr int tile_rows = many_registers ? 8 : 4;
/// The registers of columns of a tile. With SMMLA, a part of more columns would take all registers.
template <ByteUnit unit>
[[maybe_unused]] constexpr int tile_registers = unit == ByteUnit::i8mm ? 1 : panel_registers;

/// Four bytes of a row, in each lane.
[[maybe_unused, gnu::always_inline]] inline ByteRegister in_each_lane(const std::int8_t* four) {
  std::int32_t lane = 0;
  std::memcpy(&lane, four, sizeof lane);
  return reinterpret_cast<ByteRegister>(typename Register<std::int32_t, Ints::size>::type{} + lane);
}

using Floats = xsimd::batch<float>;
/// One of the numbers of the rows of a tile, in all lanes. If instructions multiply by lanes, a register has four.
[[maybe_unused, gnu::always_inline]] inline Floats of_row(const float* numbers, int row) {
#ifdef __aarch64__
  return Floats(vld1q_f32(numbers + row / 4 * 4)[row % 4]);
#else
  return Floats(numbers[row]);
#endif
}

/// sums + the products of four bytes of each column and four of a row: those of `lane` of 16 bytes if instructions
/// multiply by lanes, or those of each lane.
template <bool is_signed, ByteUnit unit, std::size_t lane>
[[gnu::always_inline]] inline Ints add_four(Ints sums, ByteRegister columns, ByteRegister row) {
#ifdef __aarch64__
  if constexpr (unit == ByteUnit::dotprod) {
    int32x4_t result = sums;
    asm(XTAPE_BYTE_UNIT "sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(result) : "w"(columns), "w"(row), "i"(lane));
    return result;
  }
  row = vreinterpretq_u8_u32(vdupq_laneq_u32(vreinterpretq_u32_u8(row), lane));
#endif
  return add_products<is_signed, unit>(sums, columns, row);
}
/// The same in 16 bits.
template <bool is_signed, ByteUnit unit, std::size_t lane>
[[gnu::always_inline]] inline Shorts add_four(Shorts sums, ByteRegister columns, ByteRegister row) {
  return sums + products_of_two<is_signed>(columns, row);
}

/// The products of a part of the rows of a tile, which are in turn in pairs, by the columns of a register.
template <int part>
[[gnu::always_inline]] inline void multiply_pairs([[maybe_unused]] const std::byte* columns,
                                                  [[maybe_unused]] const std::int8_t* rows,
                                                  [[maybe_unused]] std::int64_t row_bytes,
                                                  [[maybe_unused]] Ints (&sums)[tile_rows][1]) {
#ifdef __aarch64__
  constexpr int steps = part / 8;
  ByteRegister left[steps], right[steps][2];
#pragma GCC unroll 8
  for (int j = 0; j < 2 * steps; ++j)
    std::memcpy(&right[j / 2][j % 2], columns + j / 2 * 8 * panel_columns + j % 2 * 16, sizeof right[0][0]);
#pragma GCC unroll 4
  for (int i = 0; i < tile_rows; i += 2) {
#pragma GCC unroll 4
    for (int k = 0; k < steps; ++k) std::memcpy(&left[k], rows + i * row_bytes + k * 16, sizeof left[k]);
    int32x4_t squares[2] = {};  // of two rows and two columns
#pragma GCC unroll 4
    for (int k = 0; k < steps; ++k)
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j)
        asm(XTAPE_BYTE_UNIT "smmla %0.4s, %1.16b, %2.16b" : "+w"(squares[j]) : "w"(left[k]), "w"(right[k][j]));
    const auto first = vreinterpretq_s64_s32(squares[0]), second = vreinterpretq_s64_s32(squares[1]);
    sums[i][0] = vreinterpretq_s32_s64(vzip1q_s64(first, second));
    sums[i + 1][0] = vreinterpretq_s32_s64(vzip2q_s64(first, second));
  }
#endif
}

/// Writes the products of a band of tile_rows rows, `row_bytes` bytes apart, by the first columns of a panel to
/// `to`, whose rows are `to_row` elements apart. Adds the terms of a part in 16 bits if `in_shorts`.
template <int part, bool minima, bool is_signed, bool has_origin, ByteUnit unit, bool in_shorts>
void multiply_tile(Panel panel, ByteBand x, std::int64_t row_bytes, std::int64_t parts, float* to,
                   std::int64_t to_row) {
  constexpr bool in_pairs = unit == ByteUnit::i8mm;
  constexpr int registers = tile_registers<unit>;
  Floats totals[tile_rows][registers];
#pragma GCC unroll 8
  for (auto& row : totals)
#pragma GCC unroll 2
    for (Floats& total : row) total = Floats(0);
  for (std::int64_t p = 0; p < parts; ++p) {
    Ints sums[tile_rows][registers];
#pragma GCC unroll 8
    for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) sums[i][r] = has_origin ? Ints(x.origins[i]) : Ints(0);
    // Adds the products of four terms. row(i) has those of row i.
    const auto add_terms = [&]<std::size_t lane>(auto& sums, std::index_sequence<lane>, const auto& row)
        __attribute__((always_inline)) {
      ByteRegister columns[registers];
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) std::memcpy(&columns[r], panel.bytes + r * 4 * lanes, sizeof columns[r]);
      panel.bytes += 4 * panel_columns;
#pragma GCC unroll 8
      for (int i = 0; i < tile_rows; ++i) {
        const ByteRegister four = row(i);
#pragma GCC unroll 2
        for (int r = 0; r < registers; ++r) sums[i][r] = add_four<is_signed, unit, lane>(sums[i][r], columns[r], four);
      }
    };
    if constexpr (in_pairs) {
      multiply_pairs<part>(panel.bytes, x.bytes, row_bytes, sums);
      panel.bytes += part * panel_columns;
    } else if constexpr (multiplies_by_lanes) {
      for (int k = 0; k < part; k += 16) {
        ByteRegister rows[tile_rows];
#pragma GCC unroll 8
        for (int i = 0; i < tile_rows; ++i) std::memcpy(&rows[i], x.bytes + i * row_bytes + k, sizeof rows[i]);
        [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
          (add_terms(sums, std::index_sequence<lane>{}, [&](int i) { return rows[i]; }), ...);
        }
        (std::make_index_sequence<4>{});
      }
    } else {
      const auto add_all = [&](auto& to) __attribute__((always_inline)) {
#pragma GCC unroll 1
        for (int k = 0; k < part; k += 4)
          add_terms(to, std::index_sequence<0>{}, [&](int i) { return in_each_lane(x.bytes + i * row_bytes + k); });
      };
      if constexpr (in_shorts) {
        Shorts shorts[tile_rows][registers] = {};
        add_all(shorts);
#pragma GCC unroll 8
        for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 2
          for (int r = 0; r < registers; ++r) sums[i][r] = add_both(sums[i][r], shorts[i][r]);
      } else {
        add_all(sums);
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < registers; ++r) {
      const Floats scales = Floats::load_unaligned(panel.scales + r * lanes);
      [[maybe_unused]] Floats less;
      if constexpr (minima) less = Floats::load_unaligned(panel.minima + r * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile_rows; ++i) {
        Floats& total = totals[i][r];
        total = fused<float>(floats_of(sums[i][r]), scales * of_row(x.scales, i), total);
        if constexpr (minima) total = fused_away<float>(less, of_row(x.sums, i), total);
      }
    }
    x.bytes += in_pairs ? 2 * part : part;
    x.scales += tile_rows;
    x.origins += tile_rows;
    x.sums += tile_rows;
    panel.scales += panel_columns;
    panel.minima += panel_columns;
  }
#pragma GCC unroll 8
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 2
    for (int r = 0; r < registers; ++r) totals[i][r].store_unaligned(to + i * to_row + r * lanes);
}

/// multiply_tile for a format of panels.
using MultiplyTile = void (*)(Panel panel, ByteBand x, std::int64_t row_bytes, std::int64_t parts, float* to,
                              std::int64_t to_row);
MultiplyTile multiply_function(Dtype dtype) {
  return with_block(dtype, [](auto block) -> MultiplyTile {
    using B = decltype(block);
    if constexpr (has_fma)
      return with_byte_unit<ByteUnit::i8mm>([](auto unit) -> MultiplyTile {
        constexpr bool has_origin = origin_of<B> != 0 && !multiplies_signed;
        return multiply_tile<part_numbers<B>, has_minima<B>, has_signs<B>, has_origin, unit(), parts_are_short<B>>;
      });
    else
      return {};  // bytes_suit is false
  });
}

class ByteTiles {
 public:
  ByteTiles(const GemmPlan& plan, bool across)
      : plan_(plan),
        packing_(panel_packing(*plan.narrow[1], across)),
        multiply_(multiply_function(packed_dtype(plan, across))),
        format_(byte_format(packed_dtype(plan, across))),
        on_unit_(amx::available() && plan.m >= amx::panel_lines && suits_unit(format_)),
        in_pairs_(with_byte_unit<ByteUnit::i8mm>([](auto unit) { return unit() == ByteUnit::i8mm; })),
        origin_(on_unit_ || multiplies_signed ? std::exchange(format_.origin, 0) : 0),
        line_bytes_(bytes_of(*plan.narrow[1], across ? plan.k_strides[1] : plan.n_strides[1])),
        bytes_of_256_(bytes_of(*plan.narrow[1], 256)),
        terms_together_(across ? std::min(plan.k, terms_across) : plan.k),
        band_rows_(on_unit_ ? amx::panel_lines : tile_rows),
        rows_(terms_together_, format_, format_.part, band_rows_, in_pairs_ ? 2 : 1),
        bands_(ceiling(plan.m, band_rows_)) {
    constexpr std::int64_t tasks_a_thread = 3, least_bands = 4;
    const std::int64_t tasks = plan.threads == 1 ? 1 : tasks_a_thread * plan.threads;
    const std::int64_t most = plan.n / (tasks * packing_.least * panel_columns) * packing_.least;
    together_ = std::clamp(most, packing_.least, packing_.most);
    packs_ = ceiling(plan.n, together_ * panel_columns);
    // If there are fewer packs than tasks for the threads, several tasks pack the same panels.
    groups_ = std::clamp<std::int64_t>(ceiling(tasks, packs_), 1, ceiling(bands_, least_bands));
    group_bands_ = ceiling(bands_, groups_);
  }
  const ByteRows& rows() const { return rows_; }
  std::int64_t terms_together() const { return terms_together_; }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(plan_.threads) * pack_bytes(); }

  void run(const ByteOperands& operands, std::byte* scratch) const {
    const PanelSource source{operands.blocks, plan_.n,       operands.terms,
                             line_bytes_,     bytes_of_256_, static_cast<std::uint8_t>(origin_),
                             in_pairs_};
    const auto some = [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
      std::optional<amx::Ready> ready;
      if (on_unit_) ready.emplace(amx::part_terms);
      std::byte* panels = scratch + static_cast<std::size_t>(worker) * pack_bytes();
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task / groups_ * together_ * panel_columns;
        const std::int64_t band = task % groups_ * group_bands_, end_band = std::min(bands_, band + group_bands_);
        if (task == begin || task % groups_ == 0) packing_.pack(source, first, together_, panels);
        const std::int64_t end_column = std::min(plan_.n, first + together_ * panel_columns);
        std::byte* panel = panels;
        for (std::int64_t j = first; j < end_column; j += panel_columns, panel += panel_bytes(operands.terms))
          for (std::int64_t i = band; i < end_band; ++i) multiply(operands, panel, i * band_rows_, j);
      }
    };
    parallel_pieces(plan_.threads, packs_ * groups_, 1, some);
  }

 private:
  /// The most terms that are added together across blocks. Their panels stay in the second-level cache.
  static constexpr std::int64_t terms_across = 1024;

  /// The format of panels.
  static Dtype packed_dtype(const GemmPlan& plan, bool across) { return across ? Dtype::q8_0 : *plan.narrow[1]; }
  /// Scaling the sums of shorter parts, which is no work of the unit, takes most of the time.
  static bool suits_unit(const ByteFormat& format) { return format.part == amx::part_terms; }
  std::size_t panel_bytes(std::int64_t terms) const { return Panel::size(round_up(terms, format_.part), format_.part); }
  /// Of the panels that are packed together.
  std::size_t pack_bytes() const { return static_cast<std::size_t>(together_) * panel_bytes(terms_together_); }

  /// Computes the rows of a band, of which the first is `row`, and a panel, of which the first column is `column`.
  void multiply(const ByteOperands& operands, std::byte* packed, std::int64_t row, std::int64_t column) const {
    const std::int64_t parts = ceiling(operands.terms, format_.part);
    const std::int64_t height = std::min(band_rows_, plan_.m - row), width = std::min(panel_columns, plan_.n - column);
    const std::int64_t c_row = plan_.m_strides[2], apart = plan_.n_strides[2];
    float* c = operands.c + row * c_row + column * apart;
    const ByteBand x = rows_.band(operands.rows, row);
    const Panel panel(packed, parts * format_.part, format_.part);
    alignas(64) float sums[amx::panel_lines * panel_columns];
    const bool in_place = !operands.add && apart == 1 && height == band_rows_ && width == panel_columns;
    float* to = in_place ? c : sums;
    const std::int64_t to_row = in_place ? c_row : panel_columns;
    if (on_unit_)
      multiply_on_unit(x, panel, parts, to, to_row);
    else
      for (std::int64_t at = 0; at < panel_columns; at += in_pairs_ ? lanes : panel_columns)
        multiply_(panel.from(at, in_pairs_ ? 8 : 4), x, rows_.row_bytes(), parts, to + at, to_row);
    for (std::int64_t i = 0; !in_place && i < height; ++i, c += c_row)
      put(sums + i * panel_columns, width, operands.add, c, apart);
  }

  /// Writes the sums of a row, or adds them, to elements that are `apart` elements apart.
  static void put(const float* sums, std::int64_t width, bool add, float* to, std::int64_t apart) {
    if (apart == 1)
      for_lanes<float>(width, [&](std::int64_t j, const auto& lanes) {
        const auto some = lanes.load(sums + j);
        lanes.store(to + j, add ? lanes.load(to + j) + some : some);
      });
    else
      for (std::int64_t j = 0; j < width; ++j, to += apart) *to = add ? *to + sums[j] : sums[j];
  }

  void multiply_on_unit(const ByteBand& x, const Panel& panel, std::int64_t parts, float* to,
                        std::int64_t to_row) const {
    for (std::int64_t at = 0; at < panel_columns; at += amx::panel_lines)
      amx::multiply_bytes({parts, x.bytes, x.scales, x.sums, rows_.row_bytes(), panel.bytes + 4 * at, panel.scales + at,
                           format_.has_minima ? panel.minima + at : nullptr, panel_columns},
                          to + at, to_row);
  }

  GemmPlan plan_;
  PanelPacking packing_;
  MultiplyTile multiply_;
  ByteFormat format_;
  bool on_unit_;
  bool in_pairs_;  ///< Whether two rows are multiplied by two columns.
  int origin_;     ///< What packed bytes lose, because bytes with signs are multiplied.
  std::int64_t line_bytes_, bytes_of_256_;
  std::int64_t terms_together_;
  std::int64_t band_rows_;
  ByteRows rows_;
  std::int64_t bands_, together_, packs_, groups_, group_bands_;
};
}  // namespace

ByteProduct make_byte_tiles(const GemmPlan& plan, bool across) {
  const ByteTiles tiles(plan, across);
  return {tiles.rows(), tiles.terms_together(), tiles.scratch_bytes(),
          [tiles](const ByteOperands& operands, std::byte* scratch) { tiles.run(operands, scratch); }};
}

}  // namespace xtape
