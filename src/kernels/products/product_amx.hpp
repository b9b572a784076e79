/// Batches of float32 matrix products on the matrix unit. amx.hpp describes the method and its accuracy.
#pragma once

#include "products/gemm.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// Whether the machine has the unit and the product is large enough to pay for splitting the operands into parts.
bool amx_suits(const GemmPlan& plan, Precision precision);

/// Splits the factors into three, two or one bfloat16 numbers, for the precisions float32, bf16x3 and bf16. `plan` must
/// satisfy gemm_can. The order in which the terms of an element are summed depends on their number only. A
/// fixed operand is prepared by splitting it into parts, which take 0.5 times its size each, unless they fit no cache.
MatrixProducts<float> make_amx(const GemmPlan& plan, Precision precision);

}  // namespace xtape
