/// Plays a tape node by node.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "passes/program.hpp"
#include "single_node.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

/// The nodes that a player of these outputs would play, after the rules of the op table but before elementwise ops are
/// fused, and the arrays that feed them. Labels of values are those of the nodes of the caller's tape.
class NodeByNode {
 public:
  /// Throws Error if an input is not fed, ShapeError or DtypeError if it is fed with an array of another type.
  explicit NodeByNode(const RecordedPlay& play);

  const Program& program() const { return program_; }
  /// What single nodes are played with.
  const PlayerOptions& options() const { return options_; }
  std::uint64_t step() const { return step_; }

  /// Called after each node with its operands and its outputs, which it may change: later nodes read the changed ones.
  /// Returns whether to go on.
  using Visit = std::function<bool(std::int32_t node, const std::vector<Array>& operands, std::vector<Array>& outputs)>;
  using Values = std::map<ValueId, Array>;
  /// Plays all nodes in order. Arrays are freed after their last use, except those of the nodes in `keep` and the
  /// outputs of the program, which are returned. Throws what a kernel throws, which names op and line.
  Values play(const Visit& visit, const std::set<std::int32_t>& keep = {}) const;

  /// What the call of `node`, changed or not, gives on these operands.
  std::vector<Array> played_alone(const Node& node, const std::vector<Array>& operands) const;
  /// The last node that reads the value; -1 if none does.
  std::int32_t last_user(ValueId id) const;
  /// The array of a source.
  Array source(const Node& node) const;

 private:
  Program program_;
  Users users_;
  Store inputs_;
  PlayerOptions options_;
  std::uint64_t step_;
};

/// The program with the calls inside in place of those that have a body, such as scans: step by step.
Program with_open_bodies(const Program& program);

/// The node of the caller's tape that the value comes from: "#12 add", "#3 parameter 'h.0.w'"; of a call in a body that
/// was recorded in place of its node, "#5 checkpoint: exp".
std::string label_of(const Program& program, ValueId id);

/// The operands of a node among `values`.
std::vector<Array> operands_of(const Node& node, const NodeByNode::Values& values);

}  // namespace xtape
