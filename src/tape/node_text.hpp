/// The text of single nodes.
#pragma once

#include <string>

#include "xtape/tape.hpp"

namespace xtape {

/// Returns the line of a printed tape for a node, without the nodes of its body.
std::string line_of(const Tape& tape, std::size_t index);
/// Returns "#12", or "#12.1" with the index of the output if the node has several outputs.
std::string reference(const Tape& tape, ValueId id);

}  // namespace xtape
