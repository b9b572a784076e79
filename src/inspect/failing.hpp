/// Which node of a program fails, and which values made it fail.
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
  std::string error = "";  ///< What its kernel throws; "" if it makes a number that is not finite.
  /// If no call makes the numbers that are not finite: the nodes that pass them on from sources and literals to `node`,
  /// an output of the program.
  std::set<std::int32_t> chain = {};
};
/// The first node that fails the program even if ones take the place of the NaN and infinities that other nodes make.
/// If none does, and outputs are not finite: the node of the first such output, with its `chain`. Parameters that are
/// `given` make nothing: they are operands of a call whose body is the program.
std::optional<FailingNode> failing_node(const NodeByNode& plays, bool given = false);

/// A value that made a node fail, and the node that it is an operand of.
struct CausingValue {
  ValueId value;
  std::int32_t user = -1;
  std::vector<std::int64_t> element;  ///< The index of the first element that makes the node fail by itself; or empty.
};
/// The values that made the node fail, from its own operand back to a source or to values in the usual range; and the
/// arrays of the operands of all their users.
struct Causes {
  std::vector<CausingValue> values;
  NodeByNode::Values arrays;
  std::vector<Array> outputs;  ///< The outputs of the failing node; empty if it throws.
  Kinds failures;              ///< Their elements that fail.
};
Causes causes_of(const NodeByNode& plays, const FailingNode& failing);

}  // namespace xtape
