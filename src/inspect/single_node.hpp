/// Plays single nodes in order to examine their operands and results.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/player.hpp"

namespace xtape {

/// A tape with a single call, the operands of the call as parameters, and its outputs.
struct SingleNode {
  Tape tape;
  Vars outputs;
};
/// Returns the call of `node` on these operands. The call keeps its site, so that random ops draw the same numbers. For
/// a source, `operands` contains only the source's own array.
SingleNode single_node(const Tape& like, const Node& node, const std::vector<Array>& operands);

/// Plays the tape, which needs no feeds, and returns copies of the outputs. `options` gives seed, threads and
/// precision.
std::vector<Array> played(const Tape& tape, const Vars& outputs, const PlayerOptions& options, std::uint64_t step);

/// Returns options for a play on dense operands without fusion, so that the result of a node does not depend on its
/// neighbours.
PlayerOptions for_single_nodes(const PlayerOptions& options);

}  // namespace xtape
