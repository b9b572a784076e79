/// Products of float32 matrices on the matrix unit of Intel processors (AMX), which multiplies bfloat16 numbers and
/// bytes.
///
/// A float32 number is exactly the sum of three bfloat16 numbers (parts) of 8 bits each. The product of two such sums
/// consists of nine products of parts. The sum of the six largest is as exact as float32 arithmetic: the other three
/// are about 2^-24 of the product, the size of one rounding (Henry, Tang and Heinecke, 2019, Leveraging the bfloat16
/// artificial intelligence datatype for higher-precision computations). Sums are float32. The unit treats subnormal
/// parts and sums as 0. `sound` tests whether this can affect a result.
#pragma once

#include <cstdint>

#include "base/arrays/lengths.hpp"

#if defined(__AVX512F__) && defined(__linux__)
/// Marks functions that use the unit. Undefined where they cannot be compiled.
#define XTAPE_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8,avx512f,avx512bw,avx512vl,avx512dq")))
#endif

namespace xtape::amx {

constexpr std::int64_t panel_lines = 16;  ///< Rows of the left matrix or columns of the right matrix in a panel.
constexpr std::int64_t step_terms = 32;   ///< Summed terms per step.
constexpr std::int64_t tile_bytes = panel_lines * step_terms * 2;  ///< One part of one step of a panel.
constexpr std::int64_t block_lines = 2 * panel_lines;              ///< Rows and columns of the result of `multiply`.
constexpr std::int64_t noted_bytes = 2 * panel_lines * sizeof(float);  ///< Magnitude bounds at the end of a panel.

/// The number of steps for `terms` summed terms.
constexpr std::int64_t steps_of(std::int64_t terms) {
  return ceiling(terms, step_terms);
}

/// Whether instruction_set() includes the matrix unit.
bool available();

/// Configures the unit for this thread during its lifetime: rows of left tiles have `row_bytes` bytes (64, 32 or 16),
/// and right tiles a quarter as many rows.
class Ready {
 public:
  explicit Ready(std::int64_t row_bytes = 64);
  ~Ready();
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
};

/// One matrix of a product. `line` is the stride between rows (left operand) or columns (right operand). `term` is the
/// stride between summed terms. Both are in elements, and one of the two is 1.
struct Operand {
  const float* data;
  std::int64_t line, term;
};

/// Decomposes lines of `terms` terms into `parts` parts (1 to 3), in panels of 16 lines. Panels begin `stride` bytes
/// apart (64-byte aligned), with zeros beyond the lines and the terms. `stride` is at least steps_of(terms) * parts *
/// tile_bytes + noted_bytes. With three parts, the last `noted_bytes` of each stride contain magnitudes of the panel's
/// numbers: first the smallest nonzero magnitude of each of the 16 lanes, then the largest magnitude of each lane.
/// `least_sound` reads them.
void pack_left(const Operand& from, int parts, std::int64_t lines, std::int64_t terms, void* panels,
               std::int64_t stride);
void pack_right(const Operand& from, int parts, std::int64_t lines, std::int64_t terms, void* panels,
                std::int64_t stride);

/// One or two panels of one operand, `stride` bytes apart.
struct Panels {
  const void* data;
  std::int64_t stride;
  int count;
};
/// Memory that `multiply` prefetches into the second-level cache: `lines` cache lines of 64 bytes at every step.
struct Ahead {
  const void* data;
  std::int64_t lines;
};
/// block[32, 32] = the product of one or two panels of each side. With one part, this is the product of the rounded
/// numbers. With two or three parts, it is the sum of the three or six largest products of parts. A Ready must exist on
/// this thread.
void multiply(int parts, std::int64_t steps, const Panels& left, const Panels& right, const Ahead& ahead, float* block);

/// 16 rows and 16 columns in bytes with signs. The terms of a part share a scale in each row and column.
constexpr std::int64_t part_terms = 32;
struct ByteTile {
  std::int64_t parts;
  const std::int8_t* rows;
  const float* row_scales;   ///< [parts, 16]
  const float* row_sums;     ///< [parts, 16], for minima: scale * the sum of a part.
  std::int64_t row_bytes;    ///< From one row to the next.
  const std::byte* columns;  ///< [terms / 4, line_columns, 4]
  const float* scales;       ///< [parts, line_columns]
  const float* minima;       ///< [parts, line_columns], or null.
  std::int64_t line_columns;
};
/// sums[16, 16] = the products, whose rows are `stride` elements apart: each is one chain of fused multiply-adds, of
/// the sum of a part, an integer, by the product of both scales, and then of minus the minimum by the sum of the row. A
/// Ready(part_terms) must exist on this thread.
void multiply_bytes(const ByteTile& tile, float* sums, std::int64_t stride);

/// For panels of three parts: the smallest magnitude of a sum that loses less than half a unit in its last place. It
/// comes from a bound on the loss due to subnormal parts and sums. 0 if the numbers are so large that no part and no
/// sum can be subnormal.
float least_sound(std::int64_t terms, const Panels& left, const Panels& right);

/// Whether all sums in the first `rows` rows and `columns` columns of a block are finite and have a magnitude of at
/// least `least`. Decomposing an infinity gives NaN parts, so the sums of an infinity are not sound.
bool sound(const float* block, std::int64_t rows, std::int64_t columns, float least);

/// For a block that is not sound: for each row, sets in `zeros` the bits of the columns whose sums are 0. Returns false
/// if a sum other than 0 is not sound.
bool only_zeros(const float* block, std::int64_t rows, std::int64_t columns, float least, std::uint32_t* zeros);

/// c[i, j] = block[i, j], or += if `add`. The rows of c are `stride` elements apart.
void put(const float* block, std::int64_t rows, std::int64_t columns, bool add, float* c, std::int64_t stride);

}  // namespace xtape::amx
