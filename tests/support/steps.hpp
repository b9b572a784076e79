/// The steps of a player's plan.
#pragma once

#include <algorithm>
#include <string>

#include "xtape/player.hpp"

namespace xtape {

/// Returns the number of steps named `op`. Fused elementwise ops have names such as "a+b".
inline std::int64_t steps(const Player& player, const std::string& op) {
  const auto& all = player.plan().steps;
  return std::count_if(all.begin(), all.end(), [&](const Plan::Step& step) { return step.op == op; });
}

/// Returns how often steps contain the op, alone or among fused elementwise ops.
inline std::int64_t steps_with(const Player& player, const std::string& op) {
  std::int64_t count = 0;
  for (const Plan::Step& step : player.plan().steps) {
    const std::string name = "+" + step.op + "+", sought = "+" + op + "+";
    for (std::size_t at = name.find(sought); at != std::string::npos; at = name.find(sought, at + 1)) ++count;
  }
  return count;
}

}  // namespace xtape
