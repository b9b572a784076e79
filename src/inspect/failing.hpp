/// Finds the node of a program that fails, and the values that caused the failure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "made.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

/// The node that makes a program fail.
struct FailingNode {
  std::int32_t node = -1;
  std::string error = "";  ///< The error of its kernel, or "" if the node makes a number that is not finite.
  /// The nodes that pass on numbers that are not finite, from sources and literals to `node`, an output of the program.
  /// Empty if a call makes these numbers.
  std::set<std::int32_t> chain = {};
};
/// Returns the first node that makes the program fail even if ones replace the NaN and infinities that other nodes
/// make. If there is no such node and outputs are not finite, returns the node of the first such output with its
/// `chain`. If `given`, parameters count as finite sources, because they are operands of a call whose body is the
/// program.
std::optional<FailingNode> failing_node(const NodeByNode& plays, bool given = false);

/// A value that made a node fail, and the node that reads this value.
struct CausingValue {
  ValueId value;
  std::int32_t user = -1;
  std::vector<std::int64_t> element;  ///< The index of the first element that alone makes the node fail, or empty.
};
/// The values that made the node fail, from one of its operands back to a source or to values in the usual range. Also
/// the arrays of all operands of their users.
struct Causes {
  std::vector<CausingValue> values;
  NodeByNode::Values arrays;
  std::vector<Array> outputs;  ///< The outputs of the failing node. Empty if it throws.
  Kinds failures;              ///< The kinds of their failing elements.
};
Causes causes_of(const NodeByNode& plays, const FailingNode& failing);

}  // namespace xtape
