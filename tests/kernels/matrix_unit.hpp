/// For cases about the matrix unit and about products of bfloat16.
#pragma once

#include "instruction_set.hpp"
#include "needs.hpp"
#include "products/amx.hpp"
#include "products/tiles.hpp"

namespace xtape {

inline Needs needs_matrix_unit() {
  return {amx::available(), "a processor with a matrix unit (AMX)"};
}

inline Needs needs_tiles() {
  GemmPlan plan;
  plan.m = plan.n = plan.k = 128;
  return {tiles_suit(plan), "kernels for AVX2 or AVX-512"};
}

inline Needs needs_bfloat16() {
  GemmPlan plan;
  plan.m = plan.n = plan.k = 128;
  return {bfloat16_tiles_suit(plan), "a processor with AVX512-BF16"};
}

}  // namespace xtape
