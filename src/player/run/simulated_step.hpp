/// The interface between a simulated team and a player.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/threads/simulated_team.hpp"
#include "player/plan/placement.hpp"
#include "player/plan/plan.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// Reports to `team` that the calling thread has run a step, and which memory the step reads and writes. `addresses`
/// has the addresses of PlannedProgram::operands. Elements of memory that a layout leaves out count.
inline void note_step(SimulatedTeam& team, const Plan& plan, const PlannedProgram& planned, std::size_t step,
                      const std::vector<void*>& addresses) {
  const PlannedStep& of = planned.steps[step];
  const Node& node = planned.program->node(of.node);
  const Lowering::RunCost& cost = node.op->lowering.cost;
  const auto input_bytes = [&](std::size_t i) {
    return bytes_of(planned.program->type(of.is_copy() ? of.copied : node.inputs[i]));
  };
  const auto touch = [&](std::size_t operand, std::size_t bytes, bool writes) {
    const BufferRef& ref = planned.operands[operand];
    const std::size_t held = planned.buffers[ref.buffer].bytes - static_cast<std::size_t>(ref.byte_offset);
    team.touched(addresses[operand], std::min(bytes, held), writes);
  };
  bool in_part = false;  // whether an input is changed in part
  std::size_t written = 0;
  for (const ValueType& type : planned.types_of(of)) written += bytes_of(type);
  const std::size_t output = of.first + of.inputs;
  for (std::size_t i = 0; i < of.inputs; ++i) {
    const bool overwritten = of.outputs == 1 && addresses[of.first + i] == addresses[output];
    if (overwritten && !of.is_copy() && cost.part >= 0 && std::cmp_not_equal(i, cost.part))
      in_part = true;
    else
      touch(of.first + i, i == 0 && cost.picks ? std::min(input_bytes(i), written) : input_bytes(i), false);
  }
  for (std::size_t i = 0; i < of.outputs; ++i)
    touch(output + i, in_part ? input_bytes(static_cast<std::size_t>(cost.part)) : bytes_of(planned.types_of(of)[i]),
          true);
  team.played(plan, step);
}

}  // namespace xtape
