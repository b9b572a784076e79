// Products of many rows in bytes by a matrix in blocks. The columns of a panel are decoded to bytes once, and four
// neighbouring terms of a column are in one lane of a register, or in one lane of a row of the matrix unit's tiles.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/threads/threads.hpp"
#include "kernels/products/amx.hpp"
#include "kernels/products/byte_products.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t lanes = Ints::size;
constexpr int registers = 2;
constexpr std::int64_t panel_columns = registers * lanes;
constexpr int tile_rows = many_registers ? 8 : 4;

/// The memory of packed columns.
struct Panel {
  std::byte* bytes;  ///< [terms / 4, columns, 4]
  float* scales;     ///< [parts, columns]
  float* minima;     ///< [terms / 32, columns]

  Panel(std::byte* memory, std::int64_t terms, std::int64_t part)
      : bytes(memory),
        scales(reinterpret_cast<float*>(memory + terms * panel_columns)),
        minima(scales + terms / part * panel_columns) {}
  static std::size_t size(std::int64_t terms, std::int64_t part) {
    return whole_lines(
        static_cast<std::size_t>(panel_columns * (terms + terms / part * static_cast<std::int64_t>(sizeof(float)) +
                                                  terms / group_numbers * static_cast<std::int64_t>(sizeof(float)))));
  }
};

/// Writes the bytes of a group of 8 columns, each less `origin`.
template <class B, int odd>
void pack_group(const BlockBytes<B> (&blocks)[8], std::int64_t n, std::uint8_t origin, std::byte* to) {
  Register<std::uint32_t, 8>::type rows[8];
  for (int j = 0; j < 8; ++j)
    rows[j] = reinterpret_cast<Register<std::uint32_t, 8>::type>(group_of<B, odd>(blocks[j], n) - origin);
  transpose_square<std::uint32_t, 8>(rows);
  for (int k = 0; k < 8; ++k) std::memcpy(to + k * panel_columns * 4, &rows[k], sizeof rows[k]);
}

/// Packs block `b` of 8 columns, of which the first is column `at` of the panel.
template <class B>
void pack_block(const B* const (&columns)[8], std::int64_t b, std::int64_t at, std::uint8_t origin,
                const Panel& panel) {
  const std::int64_t first = b * block_numbers<B> / group_numbers;  // the group
  [&]<std::size_t... j>(std::index_sequence<j...>) {
    const BlockBytes<B> blocks[] = {BlockBytes<B>(columns[j][b])...};
    constexpr std::int64_t group_bytes = group_numbers * panel_columns;
    for (std::int64_t n = 0; n < block_pairs<B>; ++n) {
      pack_group<B, 0>(blocks, n, origin, panel.bytes + (first + 2 * n) * group_bytes + at * 4);
      if constexpr (group_numbers < block_numbers<B>)
        pack_group<B, 1>(blocks, n, origin, panel.bytes + (first + 2 * n + 1) * group_bytes + at * 4);
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

/// Eight columns to pack.
struct EightColumns {
  const std::byte* columns[8];
  std::int64_t blocks;  ///< Of a column.
  std::int64_t at;      ///< The place of the first column in the panel.
  std::int64_t ahead;   ///< The bytes from a column to the one that is packed next.
  std::uint8_t origin;
};
template <class B>
void pack_columns(const EightColumns& given, const Panel& panel) {
  const B* typed[8];
  for (int j = 0; j < 8; ++j) typed[j] = reinterpret_cast<const B*>(given.columns[j]);
  for (std::int64_t b = 0; b < given.blocks; ++b) {
    // The processor does not foresee reads of so many short columns.
    constexpr auto block_bytes = static_cast<std::int64_t>(sizeof(B)), cache_line = std::int64_t{64};
    for (const B* column : typed)
      for (std::int64_t byte = 0; byte < block_bytes; byte += cache_line)
        will_read(column, given.ahead + b * block_bytes + byte);
    pack_block<B>(typed, b, given.at, given.origin, panel);
  }
}

/// Four bytes of a row, in each lane.
[[gnu::always_inline]] inline ByteRegister in_each_lane(const std::int8_t* four) {
  std::int32_t lane = 0;
  std::memcpy(&lane, four, sizeof lane);
  return reinterpret_cast<ByteRegister>(typename Register<std::int32_t, Ints::size>::type{} + lane);
}

/// sums + the products of four bytes of each column and four of a row: those of `lane` of 16 bytes if instructions
/// multiply by lanes, or those of each lane.
template <bool is_signed, ByteUnit unit, std::size_t lane>
[[gnu::always_inline]] inline Ints add_four(Ints sums, ByteRegister columns, ByteRegister row) {
#ifdef __aarch64__
  if constexpr (unit == ByteUnit::dotprod) {
    int32x4_t result = sums;
    asm(XTAPE_SDOT " %0.4s, %1.16b, %2.4b[%3]" : "+w"(result) : "w"(columns), "w"(row), "i"(lane));
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

/// Adds the products of tile_rows rows, `row_bytes` bytes apart, by a panel to sums [tile_rows, panel_columns]. Adds
/// the terms of a part in 16 bits if `in_shorts`.
template <int part, bool minima, bool is_signed, bool has_origin, ByteUnit unit, bool in_shorts>
void multiply_tile(const Panel& panel, const ByteRow& x, std::int64_t row_bytes, std::int64_t parts, float* to) {
  using Floats = xsimd::batch<float>;
  const std::int64_t row_floats = row_bytes / static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t p = 0; p < parts; ++p) {
    Ints sums[tile_rows][registers];
#pragma GCC unroll 8
    for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) sums[i][r] = has_origin ? Ints(x.origins[i * row_floats + p]) : Ints(0);
    const std::byte* bytes = panel.bytes + p * part * panel_columns;
    // Adds the products of four terms. row(i) has those of row i.
    const auto add_terms = [&]<std::size_t lane>(auto& to, std::index_sequence<lane>, const auto& row)
        __attribute__((always_inline)) {
      ByteRegister columns[registers];
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) std::memcpy(&columns[r], bytes + r * 4 * lanes, sizeof columns[r]);
      bytes += 4 * panel_columns;
#pragma GCC unroll 8
      for (int i = 0; i < tile_rows; ++i) {
        const ByteRegister four = row(i);
#pragma GCC unroll 2
        for (int r = 0; r < registers; ++r) to[i][r] = add_four<is_signed, unit, lane>(to[i][r], columns[r], four);
      }
    };
    const std::int8_t* left = x.bytes + p * part;
    if constexpr (multiplies_by_lanes) {
      for (int k = 0; k < part; k += 16) {
        ByteRegister rows[tile_rows];
#pragma GCC unroll 8
        for (int i = 0; i < tile_rows; ++i) std::memcpy(&rows[i], left + i * row_bytes + k, sizeof rows[i]);
        [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
          (add_terms(sums, std::index_sequence<lane>{}, [&](int i) { return rows[i]; }), ...);
        }
        (std::make_index_sequence<4>{});
      }
    } else {
      const auto add_all = [&](auto& to) __attribute__((always_inline)) {
#pragma GCC unroll 1
        for (int k = 0; k < part; k += 4)
          add_terms(to, std::index_sequence<0>{}, [&](int i) { return in_each_lane(left + i * row_bytes + k); });
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
      const Floats scales = Floats::load_unaligned(panel.scales + p * panel_columns + r * lanes);
      [[maybe_unused]] Floats less;
      if constexpr (minima) less = Floats::load_unaligned(panel.minima + p * panel_columns + r * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile_rows; ++i) {
        float* place = to + i * panel_columns + r * lanes;
        Floats sum = fused<float>(floats_of(sums[i][r]), scales * Floats(x.scales[i * row_floats + p]),
                                  Floats::load_unaligned(place));
        if constexpr (minima) sum = fused_away<float>(less, Floats(x.sums[i * row_floats + p]), sum);
        sum.store_unaligned(place);
      }
    }
  }
}

/// The functions of a format.
struct TileFunctions {
  void (*pack)(const EightColumns& columns, const Panel& panel);
  void (*multiply)(const Panel& panel, const ByteRow& x, std::int64_t row_bytes, std::int64_t parts, float* to);
};

TileFunctions functions_of(Dtype dtype) {
  return with_block(dtype, [](auto block) -> TileFunctions {
    using B = decltype(block);
    if constexpr (has_fma)
      return with_byte_unit([](auto unit) -> TileFunctions {
        return {
            pack_columns<B>,
            multiply_tile<part_numbers<B>, has_minima<B>, has_signs<B>, origin_of<B> != 0, unit(), parts_are_short<B>>};
      });
    else
      return {};  // bytes_suit is false
  });
}

static_assert(tile_rows <= few_byte_rows);  // products have a whole band of rows

class ByteTiles {
 public:
  explicit ByteTiles(const GemmPlan& plan)
      : plan_(plan),
        dtype_(*plan.narrow[1]),
        functions_(functions_of(dtype_)),
        on_unit_(amx::available() && plan.m >= amx::panel_lines && suits_unit(byte_format(dtype_))),
        format_(byte_format(dtype_)),
        origin_(on_unit_ ? std::exchange(format_.origin, 0) : 0),
        column_bytes_(bytes_of(dtype_, plan.n_strides[1])),
        rows_(plan.k, format_, format_.part),
        panels_(ceiling(plan.n, panel_columns)),
        band_rows_(on_unit_ ? amx::panel_lines : tile_rows),
        bands_(ceiling(plan.m, band_rows_)) {
    // If there are fewer panels than tasks for the threads, several tasks pack the same panel.
    constexpr std::int64_t tasks_a_thread = 3, least_bands = 4;
    const std::int64_t tasks = plan.threads == 1 ? 1 : tasks_a_thread * plan.threads;
    groups_ = std::clamp<std::int64_t>(ceiling(tasks, panels_), 1, ceiling(bands_, least_bands));
    group_bands_ = ceiling(bands_, groups_);
  }
  const ByteRows& rows() const { return rows_; }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(plan_.threads) * panel_bytes(); }

  void run(const std::byte* x, const std::byte* blocks, float* c, std::byte* scratch) const {
    const auto some = [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
      std::optional<amx::Ready> ready;
      if (on_unit_) ready.emplace(amx::part_terms);
      const Panel panel(scratch + static_cast<std::size_t>(worker) * panel_bytes(), plan_.k, format_.part);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t column = task / groups_ * panel_columns, band = task % groups_ * group_bands_;
        if (task == begin || task % groups_ == 0) pack(blocks, column, panel);
        for (std::int64_t i = band; i < std::min(bands_, band + group_bands_); ++i)
          multiply(x, panel, i * band_rows_, column, c);
      }
    };
    parallel_pieces(plan_.threads, panels_ * groups_, 1, some);
  }

 private:
  /// Scaling the sums of more or shorter parts, which is no work of the unit, takes most of the time.
  static bool suits_unit(const ByteFormat& format) { return format.part == amx::part_terms && !format.has_minima; }
  std::size_t panel_bytes() const { return Panel::size(plan_.k, format_.part); }

  void pack(const std::byte* blocks, std::int64_t first, const Panel& panel) const {
    for (std::int64_t at = 0; at < panel_columns; at += 8) {
      EightColumns some{{}, plan_.k / block_of(dtype_), at, 8 * column_bytes_, static_cast<std::uint8_t>(origin_)};
      for (std::int64_t j = 0; j < 8; ++j)  // the last column again, if there are no more
        some.columns[j] = blocks + std::min(first + at + j, plan_.n - 1) * column_bytes_;
      functions_.pack(some, panel);
    }
  }

  /// Computes the rows of a band, of which the first is `row`.
  void multiply(const std::byte* x, const Panel& panel, std::int64_t row, std::int64_t column, float* c) const {
    alignas(64) float sums[amx::panel_lines * panel_columns] = {};
    const std::int64_t first = std::min(row, plan_.m - band_rows_);  // the last band has earlier rows, too
    const float* from = sums + (row - first) * panel_columns;
    if (on_unit_)
      multiply_on_unit(rows_.row(x, first), panel, sums);
    else
      functions_.multiply(panel, rows_.row(x, first), static_cast<std::int64_t>(rows_.bytes_of_row()),
                          plan_.k / format_.part, sums);
    const std::int64_t height = std::min(band_rows_, plan_.m - row);
    const std::int64_t width = std::min(panel_columns, plan_.n - column);
    for (std::int64_t i = 0; i < height; ++i, from += panel_columns)
      put(from, width, c + (row + i) * plan_.m_strides[2] + column * plan_.n_strides[2]);
  }

  /// Writes the sums of a row, or adds them.
  void put(const float* sums, std::int64_t width, float* to) const {
    const std::int64_t apart = plan_.n_strides[2];
    if (apart == 1 && !plan_.accumulate) {
      std::copy_n(sums, width, to);
      return;
    }
    for (std::int64_t j = 0; j < width; ++j, to += apart) *to = plan_.accumulate ? *to + sums[j] : sums[j];
  }

  void multiply_on_unit(const ByteRow& first, const Panel& panel, float* sums) const {
    for (std::int64_t at = 0; at < panel_columns; at += amx::panel_lines)
      amx::multiply_bytes(
          {plan_.k / format_.part, first.bytes, first.scales, static_cast<std::int64_t>(rows_.bytes_of_row()),
           panel.bytes + 4 * at, panel.scales + at, panel_columns},
          sums + at, panel_columns);
  }

  GemmPlan plan_;
  Dtype dtype_;
  TileFunctions functions_;
  bool on_unit_;
  ByteFormat format_;
  int origin_;  ///< What packed bytes lose, because the unit multiplies bytes with signs.
  std::int64_t column_bytes_;
  ByteRows rows_;
  std::int64_t panels_, band_rows_, bands_, groups_, group_bands_;
};
}  // namespace

ByteProduct make_byte_tiles(const GemmPlan& plan) {
  const ByteTiles tiles(plan);
  return {tiles.rows(), tiles.scratch_bytes(),
          [tiles](const std::byte* x, const std::byte* blocks, float* c, std::byte* scratch) {
            tiles.run(x, blocks, c, scratch);
          }};
}

}  // namespace xtape
