/// The precision of products.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// The precision to which float32 products may round their factors. Sums and all other ops stay in float32. Rounding
/// happens only where it is faster; docs/performance.md has the table.
enum class Precision : std::uint8_t {
  float32,  ///< No rounding: results are as exact as those of float32 arithmetic.
  bf16x3,   ///< Two bfloat16 numbers, 16 bits together: three products in place of six.
  bf16,     ///< bfloat16, 8 bits.
};

const char* name_of(Precision precision);  ///< "float32", "bf16x3", "bf16".
/// The inverse; throws Error, listing the valid names.
Precision precision_named(const std::string& name);

}  // namespace xtape
