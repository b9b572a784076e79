#include <algorithm>

#include "player/program/passes.hpp"

namespace xtape {

void early_pass(Program& program) {
  const auto is_early = [&](std::int32_t index) { return program.node(index).early; };
  if (std::ranges::none_of(program.order, is_early)) return;
  // per node: its position or, if it is played early, the position of the last of its inputs
  std::vector<std::int32_t> follows = program.positions();
  for (const std::int32_t index : program.order) {
    if (!is_early(index)) continue;
    follows[index] = 0;
    for (const ValueId& input : program.node(index).inputs)
      follows[index] = std::max(follows[index], follows[input.node]);
  }
  std::ranges::stable_sort(program.order, {}, [&](std::int32_t index) { return follows[index]; });
}

}  // namespace xtape
