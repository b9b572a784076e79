/// The text of single nodes.
#pragma once

#include <string>

#include "xtape/tape.hpp"

namespace xtape {

/// Returns the line of a printed tape for a node, without the nodes of its body.
std::string line_of(const Tape& tape, std::size_t index);
/// Returns "#12", or "#12.1" with the index of the output if the node has several outputs.
std::string reference(const Tape& tape, ValueId id);

// The first difference of two tapes.

/// Returns whether the attributes of two calls of one op have the same bits. NaN equals NaN, but 0 does not equal -0.
bool same_attributes(const Attributes& a, const Attributes& b);

/// Describes the first node in which the tapes differ, as it is on each tape. Returns "" if the tapes record the same
/// computation. Ignores source lines and the elements of parameters. Compares the keys of random calls and the elements
/// of constants.
std::string first_difference(const Tape& a, const Tape& b);

}  // namespace xtape
