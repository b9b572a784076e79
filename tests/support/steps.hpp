/// What a player's plan is made of.
#pragma once

#include <algorithm>
#include <string>

#include "xtape/player.hpp"

namespace xtape {

/// How many steps are the op, or the chain of ops.
inline std::int64_t steps(const Player& player, const std::string& op) {
  const auto& all = player.plan().steps;
  return std::count_if(all.begin(), all.end(), [&](const Plan::Step& step) { return step.op == op; });
}

}  // namespace xtape
