/// Plays a tape node by node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "kernels/math/rounding.hpp"
#include "player/program/program.hpp"
#include "xtape/inspect.hpp"
#include "xtape/op/op.hpp"
#include "xtape/player.hpp"

namespace xtape {

// Plays single nodes in order to examine their operands and results.

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

// Converts nodes to float64.

/// Returns the node with float64 in place of all float dtypes, for inputs of these types. Its inputs do not change.
/// Throws Error if its op does not support float64.
Node in_float64(Node node, const std::vector<ValueType>& inputs);

// The op that compares a value with its float64 shadow.

/// rounding_error(value, local, exact) -> (error, squares). `value` is a value of the play. `local` is the result in
/// float64 of the node that computes the value, on the node's own operands. `exact` is the same value in the play in
/// float64. `error` is the difference `exact - value`, as float32 in the value's shape. Where this difference is not
/// finite, `error` is 0. `squares` holds one RoundingSquares for each piece of the value, float64 (pieces, 5).
const Op& rounding_error_op();

/// Returns the sum of `squares` over the pieces.
RoundingSquares sum_of(const ArrayView& squares);

/// Returns the last node of the loss, or -1 if there is none. The first outputs of a play are the loss and its count,
/// which have one element each. All nodes recorded after them belong to gradients.
std::int32_t loss_node_of(const RecordedPlay& play);

/// The nodes that a player of these outputs would play, and the arrays that feed them. The rules of the op table are
/// applied, but elementwise ops are not fused. Labels of values refer to the nodes of the caller's tape.
class NodeByNode {
 public:
  /// Throws Error if an input is not fed. Throws ShapeError or DtypeError if the fed array has another type.
  explicit NodeByNode(const RecordedPlay& play);

  const Program& program() const { return program_; }
  /// The options and the random step for plays of single nodes.
  const PlayerOptions& options() const { return options_; }
  std::uint64_t step() const { return step_; }

  /// Called after each node with its operands and outputs. It may change the outputs; later nodes then read the changed
  /// values. Returns whether to continue.
  using Visit = std::function<bool(std::int32_t node, const std::vector<Array>& operands, std::vector<Array>& outputs)>;
  using Values = std::map<ValueId, Array>;
  /// Plays all nodes in order. Returns the arrays of the nodes in `keep` and the outputs of the program, and frees all
  /// other arrays after their last use. Errors of kernels propagate, with op and line.
  Values play(const Visit& visit, const std::set<std::int32_t>& keep = {}) const;

  /// Calls the op of `node` on these operands and returns the results. `node` may differ from the node of the program.
  std::vector<Array> played_alone(const Node& node, const std::vector<Array>& operands) const;
  /// Returns the last node that reads the value, or -1 if no node does.
  std::int32_t last_user(ValueId id) const;
  /// Returns the array of a source.
  Array source(const Node& node) const;

 private:
  Program program_;
  Users users_;
  Store inputs_;
  PlayerOptions options_;
  std::uint64_t step_;
};

/// Replaces nodes with a body, such as scans, by the calls inside the body, step by step.
Program with_open_bodies(const Program& program);

/// Returns a label for the node of the caller's tape from which the value comes: "#12 add" or "#3 parameter 'h.0.w'".
/// If the value comes from a call that was recorded in place of a node with a body, the label is "#5 checkpoint: exp".
std::string label_of(const Program& program, ValueId id);

/// Returns feeds with the arrays of the play's inputs.
std::vector<Feed> feeds_of(const RecordedPlay& play);

/// Returns the operands of a node from `values`.
std::vector<Array> operands_of(const Node& node, const NodeByNode::Values& values);

}  // namespace xtape
