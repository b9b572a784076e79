/// Finds the node of a program that fails, and the values that caused the failure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "inspect/made.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

/// The node that makes a program fail.
struct FailingNode {
  std::int32_t node = -1;
  std::string error = "";  ///< The error that its kernel throws, or "" if the kernel throws none.
  /// Used if no call makes NaN or infinities (see made.hpp), but sources or literals contain them. `node` is then an
  /// output of the program that is not finite, and `chain` has the nodes that pass the NaN or infinities on to this
  /// output.
  std::set<std::int32_t> chain = {};
};
/// Returns the first node that alone makes the program fail: the program still fails if ones replace the NaN and
/// infinities that all other nodes make (see made.hpp). If there is no such node and an output is not finite, returns
/// the node of the first such output with its `chain`. If `given` is true, the program is the body of a call, and its
/// parameters are the operands of this call. NaN and infinities in a parameter then do not count as made by the
/// parameter.
std::optional<FailingNode> failing_node(const NodeByNode& plays, bool given = false);

/// A value that made a node fail, and the node that reads this value.
struct CausingValue {
  ValueId value;
  std::int32_t user = -1;
  std::vector<std::int64_t> element;  ///< The index of the first element that alone makes the node fail, or empty.
};
/// The causes of a failure. `values` are the values that made the node fail. They go from an operand of the node back
/// to a source or to a value in the usual range. `arrays` has all operands of the nodes that read these values.
struct Causes {
  std::vector<CausingValue> values;
  NodeByNode::Values arrays;
  std::vector<Array> outputs;  ///< The outputs of the failing node. Empty if the node throws.
  Kinds failures;              ///< The kinds of the failing elements of `outputs`.
};
Causes causes_of(const NodeByNode& plays, const FailingNode& failing);

// Describes a failure.

/// The steps of a call with a body, recorded one by one.
struct Unrolled {
  const Tape& tape;
  const Tape& body;
  std::optional<Stepping> steps;  ///< Empty if the body is not a step of a scan.

  /// Returns the step to which node `index` of the tape belongs, as an index along the axis of steps. Returns -1 if the
  /// node belongs to no step.
  std::int64_t step_of(std::int32_t index) const;
};

/// Returns the index of the caller's node from which a node of the program comes.
std::int32_t node_in_play(const Program& program, std::int32_t index);

/// Inserts the step to which node `index` belongs at the beginning of `time_steps`. The steps of scans inside of this
/// step come after it. Does nothing if `steps` is null, which means that the node is not inside of a body.
void add_step(std::vector<std::int64_t>& time_steps, const Unrolled* steps, const Program& program, std::int32_t index);

Failure described(const Program& program, const FailingNode& failing, const Causes& causes, const Unrolled* steps);

}  // namespace xtape
