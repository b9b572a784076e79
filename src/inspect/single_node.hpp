/// Plays single nodes, so that their operands and results can be looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/player.hpp"

namespace xtape {

/// A tape with one call, whose operands are parameters, and the outputs of the call.
struct SingleNode {
  Tape tape;
  Vars outputs;
};
/// The call of `node` on these operands. Its site stays, so that random ops draw the same numbers. A source has no
/// operands, and its own array as the only element of `operands`.
SingleNode single_node(const Tape& like, const Node& node, const std::vector<Array>& operands);

/// Plays the tape, which needs no feeds, and returns copies of the outputs. `options` gives seed, threads and
/// precision.
std::vector<Array> played(const Tape& tape, const Vars& outputs, const PlayerOptions& options, std::uint64_t step);

/// The options of a play without fusion, on dense operands: what a node computes does not depend on its neighbours.
PlayerOptions for_single_nodes(const PlayerOptions& options);

}  // namespace xtape
