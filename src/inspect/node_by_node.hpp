/// Plays a tape node by node.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "player/program/program.hpp"
#include "inspect/single_node.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

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

/// Returns the operands of a node from `values`.
std::vector<Array> operands_of(const Node& node, const NodeByNode::Values& values);

}  // namespace xtape
