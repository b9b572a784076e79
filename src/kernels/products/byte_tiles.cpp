// Products of many rows in bytes by a matrix in blocks. The columns of a panel are decoded to bytes once, and four
// neighbouring terms of a column are in one lane of a register.
#include <algorithm>

#include "base/threads/threads.hpp"
#include "kernels/products/byte_products.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t lanes = Ints::size;
constexpr int registers = 2;
constexpr std::int64_t panel_columns = registers * lanes;
constexpr int tile_rows = sizeof(Ints) == 64 ? 8 : 4;

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

/// Writes the bytes of a group of 8 columns.
template <class B, int odd>
void pack_group(const BlockBytes<B> (&blocks)[8], std::int64_t n, std::byte* to) {
  Register<std::uint32_t, 8>::type rows[8];
  for (int j = 0; j < 8; ++j)
    rows[j] = reinterpret_cast<Register<std::uint32_t, 8>::type>(group_of<B, odd>(blocks[j], n));
  transpose_square<std::uint32_t, 8>(rows);
  for (int k = 0; k < 8; ++k) std::memcpy(to + k * panel_columns * 4, &rows[k], sizeof rows[k]);
}

/// Packs block `b` of 8 columns, of which the first is column `at` of the panel.
template <class B>
void pack_block(const B* const (&columns)[8], std::int64_t b, std::int64_t at, const Panel& panel) {
  const std::int64_t first = b * block_numbers<B> / group_numbers;  // the group
  [&]<std::size_t... j>(std::index_sequence<j...>) {
    const BlockBytes<B> blocks[] = {BlockBytes<B>(columns[j][b])...};
    constexpr std::int64_t group_bytes = group_numbers * panel_columns;
    for (std::int64_t n = 0; n < block_pairs<B>; ++n) {
      pack_group<B, 0>(blocks, n, panel.bytes + (first + 2 * n) * group_bytes + at * 4);
      if constexpr (group_numbers < block_numbers<B>)
        pack_group<B, 1>(blocks, n, panel.bytes + (first + 2 * n + 1) * group_bytes + at * 4);
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

/// Packs 8 columns.
template <class B>
void pack_columns(const std::byte* const (&columns)[8], std::int64_t blocks, std::int64_t at, const Panel& panel) {
  const B* typed[8];
  for (int j = 0; j < 8; ++j) typed[j] = reinterpret_cast<const B*>(columns[j]);
  for (std::int64_t b = 0; b < blocks; ++b) pack_block<B>(typed, b, at, panel);
}

/// sums + products of four bytes of each column and four bytes of a row.
template <bool is_signed>
[[gnu::always_inline]] inline Ints add_four(Ints sums, ByteRegister columns, const std::int8_t* row) {
  typedef std::int32_t Four __attribute__((may_alias, aligned(1)));  // NOLINT: `using` would drop the attributes
  const Four& four = *reinterpret_cast<const Four*>(row);
#ifdef XTAPE_ADDS_FOUR
  __m512i result = sums;
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(result) : "v"(columns), "m"(four));
  return result;
#else
  return add_products<is_signed>(
      sums, columns, reinterpret_cast<ByteRegister>(typename Register<std::int32_t, Ints::size>::type{} + four));
#endif
}

/// Adds the products of tile_rows rows by a panel to sums [tile_rows, panel_columns].
template <int part, bool minima, bool is_signed, bool has_origin>
void multiply_tile(const Panel& panel, const ByteRow (&x)[tile_rows], std::int64_t parts, float* to) {
  using Floats = xsimd::batch<float>;
  for (std::int64_t p = 0; p < parts; ++p) {
    Ints sums[tile_rows][registers];
#pragma GCC unroll 8
    for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) sums[i][r] = has_origin ? Ints(x[i].origins[p]) : Ints(0);
    const std::byte* bytes = panel.bytes + p * part * panel_columns;
    for (int k = 0; k < part; k += 4, bytes += 4 * panel_columns) {
      ByteRegister columns[registers];
#pragma GCC unroll 2
      for (int r = 0; r < registers; ++r) std::memcpy(&columns[r], bytes + r * 4 * lanes, sizeof columns[r]);
#pragma GCC unroll 8
      for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 2
        for (int r = 0; r < registers; ++r)
          sums[i][r] = add_four<is_signed>(sums[i][r], columns[r], x[i].bytes + p * part + k);
    }
#pragma GCC unroll 2
    for (int r = 0; r < registers; ++r) {
      const Floats scales = Floats::load_unaligned(panel.scales + p * panel_columns + r * lanes);
      [[maybe_unused]] Floats less;
      if constexpr (minima) less = Floats::load_unaligned(panel.minima + p * panel_columns + r * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile_rows; ++i) {
        float* place = to + i * panel_columns + r * lanes;
        Floats sum =
            fused<float>(floats_of(sums[i][r]), scales * Floats(x[i].scales[p]), Floats::load_unaligned(place));
        if constexpr (minima) sum = fused_away<float>(less, Floats(x[i].sums[p]), sum);
        sum.store_unaligned(place);
      }
    }
  }
}

/// The functions of a format.
struct TileFunctions {
  void (*pack)(const std::byte* const (&columns)[8], std::int64_t blocks, std::int64_t at, const Panel& panel);
  void (*multiply)(const Panel& panel, const ByteRow (&x)[tile_rows], std::int64_t parts, float* to);
};

TileFunctions functions_of(Dtype dtype) {
  return with_block(dtype, [](auto block) -> TileFunctions {
    using B = decltype(block);
    if constexpr (has_fma)
      return {pack_columns<B>, multiply_tile<part_numbers<B>, has_minima<B>, has_signs<B>, origin_of<B> != 0>};
    else
      return {};  // bytes_suit is false
  });
}

class ByteTiles {
 public:
  explicit ByteTiles(const GemmPlan& plan)
      : plan_(plan),
        dtype_(*plan.narrow[1]),
        functions_(functions_of(dtype_)),
        part_(byte_format(dtype_).part),
        column_bytes_(bytes_of(dtype_, plan.n_strides[1])),
        rows_(plan.k, byte_format(dtype_), byte_format(dtype_).part),
        panels_(ceiling(plan.n, panel_columns)),
        bands_(ceiling(plan.m, tile_rows)) {
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
      const Panel panel(scratch + static_cast<std::size_t>(worker) * panel_bytes(), plan_.k, part_);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t column = task / groups_ * panel_columns, band = task % groups_ * group_bands_;
        if (task == begin || task % groups_ == 0) pack(blocks, column, panel);
        for (std::int64_t i = band; i < std::min(bands_, band + group_bands_); ++i)
          multiply(x, panel, i * tile_rows, column, c);
      }
    };
    parallel_pieces(plan_.threads, panels_ * groups_, 1, some);
  }

 private:
  std::size_t panel_bytes() const { return Panel::size(plan_.k, part_); }

  void pack(const std::byte* blocks, std::int64_t first, const Panel& panel) const {
    for (std::int64_t at = 0; at < panel_columns; at += 8) {
      const std::byte* columns[8];  // the last column again, if there are no more
      for (std::int64_t j = 0; j < 8; ++j) columns[j] = blocks + std::min(first + at + j, plan_.n - 1) * column_bytes_;
      functions_.pack(columns, plan_.k / block_of(dtype_), at, panel);
    }
  }

  void multiply(const std::byte* x, const Panel& panel, std::int64_t row, std::int64_t column, float* c) const {
    ByteRow rows[tile_rows];  // the last row again, if there are no more
    for (std::int64_t i = 0; i < tile_rows; ++i) rows[i] = rows_.row(x, std::min(row + i, plan_.m - 1));
    alignas(64) float sums[tile_rows * panel_columns] = {};
    functions_.multiply(panel, rows, plan_.k / part_, sums);
    const std::int64_t height = std::min<std::int64_t>(tile_rows, plan_.m - row);
    const std::int64_t width = std::min(panel_columns, plan_.n - column);
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        float& to = c[(row + i) * plan_.m_strides[2] + (column + j) * plan_.n_strides[2]];
        const float sum = sums[i * panel_columns + j];
        to = plan_.accumulate ? to + sum : sum;
      }
  }

  GemmPlan plan_;
  Dtype dtype_;
  TileFunctions functions_;
  std::int64_t part_, column_bytes_;
  ByteRows rows_;
  std::int64_t panels_, bands_, groups_, group_bands_;
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
