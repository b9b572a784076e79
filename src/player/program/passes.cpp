// Runs the passes in order.
#include "player/program/passes.hpp"

#include "base/system/instruction_set.hpp"
#include "kernels/table/kernels.hpp"
#include "tape/calls.hpp"

namespace xtape {

namespace {
bool applies_rules(const Passes& passes) {
  return passes.fuse && !passes.expand;
}

/// For Bits::same: throws Error if results can have other bits on another processor.
void check_bits(const Program& program) {
  if (!kernels().fuses)
    throw Error(std::string("bits \"same\" needs fused multiply-adds, which the instruction set ") +
                name_of(instruction_set()) + " does not have: use bits \"usual\"");
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    if (node.op->lowering.varies.empty()) continue;
    Error error("'" + node.op->name + "' can have other bits on another processor (" + node.op->lowering.varies +
                "), which bits \"same\" refuses: use bits \"usual\"");
    if (node.site.op != nullptr) error.name_op(node.site.op->name);
    name_place(error, node.site);
    throw error;
  }
}

/// Returns the program to which the rules apply.
Program expanded(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  const Expand which = passes.expand ? (passes.unroll ? Expand::all : Expand::all_but_scans)
                       : passes.fuse ? Expand::without_kernel
                                     : Expand::fused;
  Program program = extract(tape, outputs, options.carries);
  expand_pass(program, which);
  if (options.bits == Bits::same) check_bits(program);
  early_pass(program);
  return program;
}
}  // namespace

std::vector<Plan::Fusion> notes_on_rules(const Tape& tape, const OpTable& table, const Vars& outputs,
                                         const PlayerOptions& options) {
  if (!applies_rules(options.passes)) return {};
  Program program = expanded(tape, outputs, options);
  program.tape.set_ops(table);
  return notes_on_rules(program);
}

namespace {
/// Returns the program with all rules applied.
Program fused(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  Program program = expanded(tape, outputs, options);
  if (applies_rules(options.passes)) fuse_pass(program);
  return program;
}

/// Runs the passes after the rules.
Program lowered(Program program, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  const bool narrow = has_narrow(program);
  const bool blocks = passes.elementwise && passes.views;  // blocks are not copied, and not read one node at a time
  if (narrow && applies_rules(passes)) postpone_pass(program, blocks);
  if (narrow) widen_pass(program);
  if (passes.fold) fold_pass(program);
  if (passes.common) common_pass(program);
  scan_pass(program);
  if (passes.accumulate) accumulate_pass(program);
  // Other processors do not round factors, or their matrix unit reads only float32.
  const bool rounds = options.precision == Precision::bf16 && instruction_set() == InstructionSet::avx512_bf16;
  if (applies_rules(passes) && rounds) store_factors_pass(program);
  if (applies_rules(passes) && (narrow || rounds)) read_narrow_pass(program, blocks);
  if (passes.elementwise) elementwise_pass(program);
  program.compact();
  return program;
}
}  // namespace

Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  return lowered(fused(tape, outputs, options), options);
}

std::optional<Program> with_repeated_steps(const Tape& tape, const Vars& outputs, const PlayerOptions& options,
                                           RepeatSteps which) {
  if (which == RepeatSteps::none) return optimised(tape, outputs, options);
  Program program = fused(tape, outputs, options);
  if (!repeat_steps_pass(program, which)) return std::nullopt;
  return lowered(std::move(program), options);
}

}  // namespace xtape
