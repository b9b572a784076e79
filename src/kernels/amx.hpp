/// Products of float32 matrices on the matrix unit of Intel's processors (AMX), which multiplies bfloat16 alone.
///
/// A float32 number is the sum of three bfloat16 numbers of 8 bits each, without any rounding, and a product of two
/// such sums is nine products, of which the six largest make it as exact as float32 arithmetic: what is left out is
/// about 2^-24 of a product, the size of one rounding (Henry, Tang and Heinecke, 2019, Leveraging the bfloat16
/// artificial intelligence datatype for higher-precision computations). Sums are float32. The unit takes subnormal
/// numbers for 0, parts and sums alike: `sound` says whether that can be seen in a result.
#pragma once

#include <cstdint>

namespace xtape::amx {

constexpr std::int64_t panel_lines = 16;  ///< Rows of the left matrix or columns of the right one in a panel.
constexpr std::int64_t step_terms = 32;   ///< Summed terms of a step.
constexpr std::int64_t step_bytes = 3 * panel_lines * step_terms * 2;  ///< Of one step of a panel: three parts.
constexpr std::int64_t block_lines = 2 * panel_lines;                  ///< Rows, and columns, of what multiply gives.
constexpr std::int64_t noted_bytes = 2 * panel_lines * sizeof(float);  ///< Of the sizes noted beside a panel.

constexpr std::int64_t steps_of(std::int64_t terms) {
  return (terms + step_terms - 1) / step_terms;
}

/// Whether this processor has the unit and the system lets this process use it (Linux asks to be asked once).
bool available();

/// Makes the unit ready for this thread, while it lives.
class Ready {
 public:
  Ready();
  ~Ready();
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
};

/// One matrix of a product: `line` is the step between its rows if it stands on the left, between its columns if on the
/// right; `term` the step between summed terms. One of them is 1.
struct Operand {
  const float* data;
  std::int64_t line, term;
};

/// Splits lines of `terms` terms into parts, in panels of 16 lines that begin `stride` bytes apart (64-byte aligned),
/// with zeros beyond the lines and the terms. `stride` is at least steps_of(terms) * step_bytes + noted_bytes. The last
/// `noted_bytes` of each stride hold 16 least sizes other than 0 of the panel's numbers, then 16 greatest sizes, each
/// of some of the numbers: `least_sound` reads them.
void pack_left(const Operand& from, std::int64_t lines, std::int64_t terms, void* panels, std::int64_t stride);
void pack_right(const Operand& from, std::int64_t lines, std::int64_t terms, void* panels, std::int64_t stride);

/// block[32, 32] = the product of one or two panels of either side, the panels of one operand `stride` bytes apart.
/// Needs a Ready.
struct Panels {
  const void* data;
  std::int64_t stride;
  int count;
};
/// What is asked for meanwhile, into the second-level cache: some lines of 64 bytes at every step.
struct Ahead {
  const void* data;
  std::int64_t lines;
};
void multiply(std::int64_t steps, const Panels& left, const Panels& right, const Ahead& ahead, float* block);

/// The least size of a sum whose loss is below half a unit in its last place: the bound of what subnormal parts and
/// sums can lose, scaled. 0 where the numbers are large enough that no part and no sum can be subnormal.
float least_sound(std::int64_t terms, const Panels& left, const Panels& right);

/// Whether all of a block's first rows and columns are finite and of at least this size. Of an infinite number some
/// parts are NaN.
bool sound(const float* block, std::int64_t rows, std::int64_t columns, float least);

/// Of a block that is not sound: which sums of each row are 0, a bit for each column. False where others are not sound.
bool only_zeros(const float* block, std::int64_t rows, std::int64_t columns, float least, std::uint32_t* zeros);

/// c[i, j] = (or +=) block[i, j]; the rows of c are `stride` apart.
void put(const float* block, std::int64_t rows, std::int64_t columns, bool add, float* c, std::int64_t stride);

}  // namespace xtape::amx
