/// Which node of a program fails, and which values made it fail.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node_by_node.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

/// Numbers that are not finite.
struct NotFinite {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};
NotFinite not_finite(const Array& array);
/// The node that makes a program fail.
struct FailingNode {
  std::int32_t node = -1;
  std::string error;  ///< What its kernel throws; "" if it makes a number that is not finite.
};
/// The first node that fails the program even if ones take the place of the NaN and infinities that other nodes make.
std::optional<FailingNode> failing_node(const NodeByNode& plays);

/// A value that made a node fail, and the node that it is an operand of.
struct CausingValue {
  ValueId value;
  std::int32_t user = -1;
};
/// The values that made the node fail, from its own operand back to a source or to values in the usual range; and the
/// arrays of the operands of all their users.
struct Causes {
  std::vector<CausingValue> values;
  NodeByNode::Values arrays;
};
Causes causes_of(const NodeByNode& plays, const FailingNode& failing);

}  // namespace xtape
