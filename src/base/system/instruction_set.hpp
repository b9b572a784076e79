/// The instruction set for which kernels are chosen.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// The sets of all architectures. Each includes those before it that its architecture has: x86-64 has `baseline` and
/// the sets from `avx2` on, AArch64 has `neon`, `dotprod` and `i8mm`. `baseline` and `neon` are the compiler's default
/// there.
enum class InstructionSet : std::uint8_t {
  baseline,     ///< SSE2 on x86-64.
  neon,         ///< With fused multiply-adds: Armv8.0.
  dotprod,      ///< With products of int8 numbers.
  i8mm,         ///< With products of int8 matrices.
  avx2,         ///< With FMA: x86-64-v3.
  avx512,       ///< With BW, CD, DQ and VL: x86-64-v4.
  avx512_bf16,  ///< With VNNI: products of bfloat16 numbers and of int8 numbers.
  amx,          ///< Matrix tiles of bfloat16 numbers and of int8 numbers.
};

const char* name_of(InstructionSet set);
/// The inverse of name_of. Throws Error if this architecture has no such set. The text begins with `what` and lists the
/// names.
InstructionSet instruction_set_named(const std::string& name, const std::string& what);

/// Returns the widest instruction set that this processor has and that Linux lets this process use. The first call asks
/// for permission to use AMX.
InstructionSet processor_instruction_set();

/// Returns the widest instruction set that this processor has and that XTAPE_ISA allows. XTAPE_ISA is the name of the
/// widest allowed instruction set. Throws Error if XTAPE_ISA is not such a name. The first call decides for the whole
/// process.
InstructionSet instruction_set();

}  // namespace xtape
