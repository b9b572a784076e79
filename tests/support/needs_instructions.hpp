/// Conditions of cases that need an instruction set.
#pragma once

#include "base/system/instruction_set.hpp"
#include "kernels/table/kernels.hpp"
#include "needs.hpp"

namespace xtape {

// doctest calls these functions before `main`. Only `main` skips a suite whose kernels this processor cannot run, so
// these functions must not call kernels.

inline Needs needs_fused() {
  return {kernels().fuses, "a processor with fused multiply-adds"};
}

inline Needs needs_matrix_unit() {
  return {instruction_set() >= InstructionSet::amx, "a processor with a matrix unit (AMX)"};
}

inline Needs needs_tiles() {
  return {instruction_set() != InstructionSet::baseline, "kernels for AVX2, AVX-512 or NEON"};
}

inline Needs needs_bfloat16() {
  return {instruction_set() >= InstructionSet::avx512_bf16, "a processor with AVX512-BF16"};
}

/// For precision int8.
inline Needs needs_bytes() {
  const bool vnni = instruction_set() != InstructionSet::avx512;
  return {kernels().fuses && vnni, "a processor with fused multiply-adds; if it has AVX-512, with VNNI"};
}

}  // namespace xtape
