// Runs the passes in order.
#include "passes.hpp"

#include "instruction_set.hpp"

namespace xtape {

namespace {
bool applies_rules(const Passes& passes) {
  return passes.fuse && !passes.expand;
}

/// The program to which rules are applied.
Program expanded(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  const Expand which = passes.expand ? Expand::all : passes.fuse ? Expand::without_kernel : Expand::fused;
  return expand_pass(extract(tape, outputs, options.carries), which);
}
}  // namespace

std::vector<Plan::Fusion> notes_on_rules(const Tape& tape, const OpTable& table, const Vars& outputs,
                                         const PlayerOptions& options) {
  if (!applies_rules(options.passes)) return {};
  Program program = expanded(tape, outputs, options);
  program.tape.set_ops(table);
  return notes_on_rules(program);
}

Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  Program program = expanded(tape, outputs, options);
  if (applies_rules(passes)) program = fuse_pass(std::move(program));
  program = scan_pass(std::move(program));
  if (applies_rules(passes)) program = postpone_pass(std::move(program));
  program = widen_pass(std::move(program));
  if (passes.fold) program = fold_pass(std::move(program));
  if (passes.common) program = common_pass(std::move(program));
  if (passes.accumulate) program = accumulate_pass(std::move(program));
  // Other processors do not round factors, or read only float32 (the matrix unit).
  const bool rounds = options.precision == Precision::bf16 && instruction_set() == InstructionSet::avx512_bf16;
  if (applies_rules(passes) && rounds) program = store_factors_pass(std::move(program));
  if (applies_rules(passes)) program = read_narrow_pass(std::move(program));
  if (passes.elementwise) program = elementwise_pass(std::move(program));
  return program;
}

}  // namespace xtape
