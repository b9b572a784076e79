/// The precision of matrix products.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// The precision to which float32 products may round their operands. Sums and all other ops stay in float32. Products
/// round only where it is faster. docs/performance.md has the table.
enum class Precision : std::uint8_t {
  float32,  ///< No rounding. Results are as exact as those of float32 arithmetic.
  bf16x3,   ///< Two bfloat16 numbers, 16 bits together. Needs three products instead of six.
  bf16,     ///< bfloat16, 8 bits.
};

const char* name_of(Precision precision);  ///< "float32", "bf16x3", "bf16".
/// The inverse of name_of. Throws Error with a list of the valid names.
Precision precision_named(const std::string& name);

}  // namespace xtape
