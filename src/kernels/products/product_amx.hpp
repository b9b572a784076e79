/// Batches of float32 matrix products on the matrix unit. amx.hpp describes the method and its accuracy.
#pragma once

#include "kernels/products/gemm.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// Whether the machine has the matrix unit and the product is large enough to pay for decomposing the operands into
/// parts.
bool amx_suits(const GemmPlan& plan, Precision precision);

/// Decomposes the operands into three, two or one bfloat16 numbers, for the precisions float32, bf16x3 and bf16. `plan`
/// must satisfy gemm_can. The order in which the terms of an element are summed depends only on their number. A fixed
/// operand is decomposed into parts in advance, unless the parts do not fit the cache. Each part takes 0.5 times the
/// size of the operand.
MatrixProducts<float> make_amx(const GemmPlan& plan, Precision precision);

}  // namespace xtape
