/// The precision of matrix products.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// The precision to which float32 products may round their operands. Sums and all other ops stay in float32. Products
/// round only where it is faster. docs/reference/precision.md has the table.
enum class Precision : std::uint8_t {
  float32,  ///< No rounding. Results are as exact as those of float32 arithmetic.
  bf16x3,   ///< The sum of two bfloat16 numbers, with 16 bits. A product takes three bfloat16 products.
  bf16,     ///< bfloat16, 8 bits.
};

const char* name_of(Precision precision);  ///< "float32", "bf16x3", "bf16".
/// The inverse of name_of. Throws Error with a list of the valid names.
Precision precision_named(const std::string& name);

}  // namespace xtape
