/// Batches of float32 matrix products on the matrix unit: see amx.hpp for how, and for how exact.
#pragma once

#include "product_gemm.hpp"

namespace xtape {

/// Whether the machine has the unit and the product is large enough to pay for splitting the operands into parts.
bool amx_suits(const GemmPlan& plan);

/// The plan is one that gemm_can. Every element is summed in an order that depends on the number of terms alone. A
/// fixed operand is prepared by splitting it into parts, half as large again as itself, unless they would fit no cache.
MatrixProducts<float> make_amx(const GemmPlan& plan);

}  // namespace xtape
