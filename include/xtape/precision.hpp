/// The precision of products.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// To what the factors of float32 products may be rounded. Sums are float32 in all cases, and so is everything that is
/// not a product. Rounding happens only where it is faster; docs/performance.md has the table.
enum class Precision : std::uint8_t {
  float32,  ///< Not at all: results are as exact as those of float32 arithmetic.
  bf16x3,   ///< To two bfloat16 numbers, 16 bits together, which takes three products in place of six.
  bf16,     ///< To bfloat16, 8 bits.
};

const char* name_of(Precision precision);  ///< "float32", "bf16x3", "bf16".
/// The inverse; throws Error, listing the valid names.
Precision precision_named(const std::string& name);

}  // namespace xtape
