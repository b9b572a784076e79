/// Batches of float32 matrix products on the matrix unit: see amx.hpp for how, and for how exact.
#pragma once

#include <functional>

#include "product_gemm.hpp"

namespace xtape {

/// Whether the machine has the unit and the product is large enough to pay for splitting the operands into parts.
bool amx_suits(const GemmPlan& plan);

/// What the parts of the operands need; scratch is 64-byte aligned.
std::size_t amx_scratch_bytes(const GemmPlan& plan);

/// The plan is one that gemm_can. Every element is summed in an order that depends on the number of terms alone.
std::function<void(const float* a, const float* b, float* c, void* scratch)> make_amx(const GemmPlan& plan);

}  // namespace xtape
