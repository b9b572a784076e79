/// Plays with and without fusion rules.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "expansion.hpp"
#include "steps.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// Plays `outputs` twice and returns the player. Checks that its values equal the values of a player without rules, and
/// that the steps of the player without rules contain neither `op` nor its gradient.
inline Player played_with_rules(const Tape& tape, const Vars& outputs, const std::string& op, double tolerance = 1e-11,
                                const std::vector<Feed>& feeds = {}) {
  PlayerOptions off;
  off.passes.fuse = false;
  Player player(tape, outputs), plain(tape, outputs, off);
  CHECK(plain.plan().fusions.empty());
  CHECK(steps_with(plain, op) == 0);
  CHECK(steps_with(plain, op + "_grad") == 0);
  for (const std::uint64_t step : {0u, 1u}) {
    player.play(feeds, step);
    plain.play(feeds, step);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      CAPTURE(k);
      const auto found = as_doubles(Array(player.view(outputs[k]))), wanted = as_doubles(Array(plain.view(outputs[k])));
      std::size_t differing = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) differing += !close(found.data()[i], wanted.data()[i], tolerance);
      CHECK(differing == 0);
    }
  }
  return player;
}

/// The number of steps with an op, and the number of steps with the gradient of this op.
using Count = std::pair<std::int64_t, std::int64_t>;
inline Count fused(const std::string& op, const Tape& tape, const Vars& outputs, double tolerance = 1e-11) {
  const Player player = played_with_rules(tape, outputs, op, tolerance);
  return {steps_with(player, op), steps_with(player, op + "_grad")};
}

}  // namespace xtape
