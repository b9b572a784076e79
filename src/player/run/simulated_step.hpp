/// The interface between a simulated team and a player.
#pragma once

#include <algorithm>
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
  std::size_t written = 0;
  for (const ValueType& type : planned.types_of(of)) written += bytes_of(type);
  const auto touch = [&](std::size_t operand, std::size_t bytes, bool writes) {
    const BufferRef& ref = planned.operands[operand];
    const std::size_t held = planned.buffers[ref.buffer].bytes - static_cast<std::size_t>(ref.byte_offset);
    team.touched(addresses[operand], std::min(bytes, held), writes);
  };
  for (std::size_t i = 0; i < of.inputs; ++i) {
    const ValueId value = of.is_copy() ? of.copied : node.inputs[i];
    const std::size_t bytes = bytes_of(planned.program->type(value));
    touch(of.first + i, i == 0 && node.op->lowering.cost.picks ? std::min(bytes, written) : bytes, false);
  }
  for (std::size_t i = 0; i < of.outputs; ++i) touch(of.first + of.inputs + i, bytes_of(planned.types_of(of)[i]), true);
  team.played(plan, step);
}

}  // namespace xtape
