#include "base/threads/instruction_set.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace xtape {

namespace {
constexpr std::array<const char*, 5> set_names{"baseline", "avx2", "avx512", "avx512_bf16", "amx"};

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
#else
InstructionSet of_processor() {
  return InstructionSet::baseline;
}
#endif

InstructionSet most_allowed() {
  const char* given = std::getenv("XTAPE_ISA");
  if (given == nullptr || *given == '\0') return InstructionSet::amx;
  return instruction_set_named(given, "XTAPE_ISA");
}
}  // namespace

const char* name_of(InstructionSet set) {
  return set_names[static_cast<std::size_t>(set)];
}

InstructionSet instruction_set_named(const std::string& name, const std::string& what) {
  const auto found = std::ranges::find(set_names, name);
  if (found == set_names.end())
    throw Error(what + " must be one of baseline, avx2, avx512, avx512_bf16 and amx, not '" + name + "'" +
                did_you_mean(name, {set_names.begin(), set_names.end()}));
  return static_cast<InstructionSet>(found - set_names.begin());
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
