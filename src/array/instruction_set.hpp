/// The instruction set for which kernels are chosen.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// Each includes those before it. `baseline` is what the compiler assumes without options: SSE2 on x86-64.
enum class InstructionSet : std::uint8_t {
  baseline,
  avx2,         ///< With FMA: x86-64-v3.
  avx512,       ///< With BW, CD, DQ and VL: x86-64-v4.
  avx512_bf16,  ///< With VNNI: products of bfloat16 and of int8.
  amx,          ///< Matrix tiles of bfloat16 and of int8.
};

const char* name_of(InstructionSet set);
/// The inverse. Throws Error, which begins with `what` and lists the names.
InstructionSet instruction_set_named(const std::string& name, const std::string& what);

/// The widest that this processor has and Linux lets this process use. The first call asks for permission to use AMX.
InstructionSet processor_instruction_set();

/// The widest instruction set that this processor has and XTAPE_ISA allows: the name of one, which limits it. Throws
/// Error if XTAPE_ISA is not a name. The first call decides for the process.
InstructionSet instruction_set();

}  // namespace xtape
