#include "base/system/instruction_set.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace xtape {

namespace {
constexpr std::array<const char*, 8> set_names{"baseline", "neon",   "dotprod",     "i8mm",
                                               "avx2",     "avx512", "avx512_bf16", "amx"};
// Those of this architecture.
#ifdef __aarch64__
constexpr std::array sets{InstructionSet::neon, InstructionSet::dotprod, InstructionSet::i8mm};
#else
constexpr std::array sets{InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512,
                          InstructionSet::avx512_bf16, InstructionSet::amx};
#endif

#if defined(__x86_64__) && defined(__linux__)
/// Returns whether all `bits` are set in a register (0: eax … 3: edx) of leaf 7 of cpuid.
bool has(unsigned subleaf, std::size_t which, unsigned bits) {
  std::array<unsigned, 4> registers{};
  if (__get_cpuid_count(7, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]) == 0) return false;
  return (registers[which] & bits) == bits;
}

InstructionSet of_processor() {
  __builtin_cpu_init();
  // Processors with these features have all of x86-64-v3. __builtin_cpu_supports also checks whether the system saves
  // the registers.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
    return InstructionSet::baseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return InstructionSet::avx2;
  constexpr unsigned vnni = 1u << 11, bf16 = 1u << 5;
  if (!has(0, 2, vnni) || !has(1, 0, bf16)) return InstructionSet::avx512;
  constexpr unsigned tile_bf16 = 1u << 22, tile = 1u << 24, tile_int8 = 1u << 25;
  constexpr long ask_for_permission = 0x1023, tile_data = 18;
  if (!has(0, 3, tile_bf16 | tile | tile_int8) || syscall(SYS_arch_prctl, ask_for_permission, tile_data) != 0)
    return InstructionSet::avx512_bf16;
  return InstructionSet::amx;
}
#elif defined(__aarch64__) && defined(__linux__)
InstructionSet of_processor() {
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return InstructionSet::neon;
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0 ? InstructionSet::i8mm : InstructionSet::dotprod;
}
#else
InstructionSet of_processor() {
  return sets.front();
}
#endif

InstructionSet most_allowed() {
  const char* given = std::getenv("XTAPE_ISA");
  if (given == nullptr || *given == '\0') return sets.back();
  return instruction_set_named(given, "XTAPE_ISA");
}
}  // namespace

const char* name_of(InstructionSet set) {
  return set_names[static_cast<std::size_t>(set)];
}

InstructionSet instruction_set_named(const std::string& name, const std::string& what) {
  std::vector<std::string> names;
  for (const InstructionSet set : sets) {
    names.emplace_back(name_of(set));
    if (name == names.back()) return set;
  }
  throw Error(what + " must be one of " + joined(names) + ", not '" + name + "'" + did_you_mean(name, names));
}

InstructionSet processor_instruction_set() {
  static const InstructionSet widest = of_processor();
  return widest;
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = std::min(processor_instruction_set(), most_allowed());
  return chosen;
}

}  // namespace xtape
