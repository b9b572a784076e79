/// The precision of matrix products, and the promise that results have the same bits on every processor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xtape {

/// The precision to which float32 products may round their operands. All other ops stay in float32, and sums, except
/// those of integers, too. Products round only where it is faster. docs/reference/precision.md has the table.
enum class Precision : std::uint8_t {
  float32,  ///< No rounding. Results are as exact as those of float32 arithmetic.
  bf16x3,   ///< The sum of two bfloat16 numbers, with 16 bits. A product takes three bfloat16 products.
  bf16,     ///< bfloat16, 8 bits.
  /// Products with a weight in blocks (Dtype::q8_0 …) round the other operand to 8 bits in blocks of 32, and add up
  /// integers. The results have the same bits on every processor. All other products are those of float32.
  int8,
  /// int8, and in products of more than 8 rows whose sums lie across the blocks, as those of gradients do, the weight's
  /// values are rounded to 8 bits once more, 32 terms of a sum together. The same bits on every processor, too.
  int8_training,
};

/// Whether products that have no blocks round to bfloat16 on some processors.
constexpr bool rounds_to_bfloat16(Precision precision) {
  return precision == Precision::bf16x3 || precision == Precision::bf16;
}

/// Whether products of floats by a weight in blocks round both to bytes.
constexpr bool rounds_to_bytes(Precision precision) {
  return precision == Precision::int8 || precision == Precision::int8_training;
}

const char* name_of(Precision precision);  ///< "float32", "bf16x3", "bf16", "int8", "int8_training".
/// The inverse of name_of. Throws Error with a list of the valid names.
Precision precision_named(const std::string& name);
std::vector<std::string> precision_names();  ///< All names, in the order of the values.

/// Whether results have the same bits on every processor with fused multiply-adds (x86-64 with AVX2, AArch64).
/// docs/explanation/bits.md says what this covers.
enum class Bits : std::uint8_t {
  usual,  ///< The same, as far as the precision, the ops and the processor allow.
  same,   ///< The same. Planning throws Error if precision, an op or the processor does not allow it.
  fast,   ///< Those of the processor's fastest units: products of float32 use the matrix unit (AMX).
};

const char* name_of(Bits bits);  ///< "usual", "same", "fast".
/// The inverse of name_of. Throws Error with a list of the valid names.
Bits bits_named(const std::string& name);

}  // namespace xtape
