/// The text of single nodes.
#pragma once

#include <string>

#include "xtape/tape.hpp"

namespace xtape {

/// The line that a printed tape has for a node, without the nodes of its body.
std::string line_of(const Tape& tape, std::size_t index);
/// "#12", with the output if the node has several: "#12.1".
std::string reference(const Tape& tape, ValueId id);

}  // namespace xtape
