/// The program of a player: the nodes that the player runs. Passes rewrite it in place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tape/graph.hpp"
#include "xtape/op/op.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// The node of the caller's tape from which a value comes. The value replaces an output of this node, or is computed on
/// the way to such a replacement.
struct Origin {
  std::int32_t node = -1;
  const Op* op = nullptr;
};
std::string to_string(const Origin& origin);  ///< The form of the caller's printed tape: "#12 add".

/// The nodes to play, on a tape. A pass appends new nodes to the tape and changes `order`. Existing nodes keep their
/// indices until `compact`. The tape may therefore have nodes that are not in the program, and a node may read values
/// of nodes with higher indices.
struct Program {
  /// Creates an empty program for nodes of `like` or their replacements.
  explicit Program(const Tape& like) : tape(like.blank()) {}
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;

  Tape tape;                                         ///< A tape that only this program uses.
  std::vector<std::int32_t> order;                   ///< The nodes, in the order in which they are played.
  std::vector<ValueId> outputs;                      ///< The outputs of the player, then those of the carries.
  std::vector<std::pair<ValueId, ValueId>> carries;  ///< (input, output). The input is {-1, 0} if no node reads it.
  std::vector<std::int32_t> regions;  ///< Per node: the number of the body from which it comes, or 0 for none.
  std::int32_t region_count = 1;
  ValueTable<Origin> origins;

  Var var(ValueId id) const { return tape.var(id); }
  const Node& node(std::int32_t index) const { return node_of(tape, index); }
  const ValueType& type(ValueId id) const { return type_of(tape, id); }
  /// Returns for each node of the tape its place in `order`, or -1 if the node is not in the program.
  std::vector<std::int32_t> positions() const;
  /// Returns a copy of the program. The new tape has only the nodes of the program, in order.
  Program copy() const;
  /// Moves the program to a new tape that has only its nodes, in order, unless its tape is already of this kind. Nodes
  /// get new indices.
  void compact();
  std::string label(ValueId id) const { return to_string(origins[id]); }  ///< Names the value's origin.
};

/// Returns the call of a node in the form that the functions of its op receive.
OpCall call_of(const Program& program, const Node& node);

/// Returns a program with copies of the nodes on which `outputs` and the outputs of the carries depend. Throws an error
/// if a var belongs to another tape than `tape`, or if a carry is not valid.
Program extract(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries);

/// For each value, the nodes of a program that use it, in the order of the program. A node with several uses occurs
/// several times.
class Users {
 public:
  explicit Users(const Program& program);
  std::span<const std::int32_t> of(ValueId id) const {
    const Slice& slice = slices_[id];
    return {users_.data() + slice.end - slice.count, slice.count};
  }
  /// Returns the users of all outputs of a node.
  std::span<const std::int32_t> of(std::int32_t node) const {
    const auto slices = slices_.of(node);
    if (slices.empty()) return {};
    const std::size_t begin = slices.front().end - slices.front().count;
    return {users_.data() + begin, slices.back().end - begin};
  }

 private:
  struct Slice {
    std::uint32_t end = 0, count = 0;
  };
  ValueTable<Slice> slices_;
  std::vector<std::int32_t> users_;
};

/// Rewrites a program. A pass visits the nodes in order, and for each of them calls `keep`, or records other nodes and
/// calls `close`, or drops it.
class Rewriter {
 public:
  explicit Rewriter(Program& program) : program_(program), now_(program.tape, {}), seen_(program.tape.size()) {
    order_.reserve(program.order.size());
  }

  const Program& program() const { return program_; }
  /// Returns the program's tape, in order to record new nodes on it.
  Tape& tape() { return program_.tape; }
  /// Keeps node `index`. Its inputs become their replacements (see now()).
  void keep(std::int32_t index);
  /// From now on, replaces value `old` by `fresh` in kept nodes and in the outputs.
  void replace(ValueId old, const Var& fresh);
  /// Returns the value that replaces a value of the program, or the value itself if nothing replaces it.
  ValueId now(ValueId old) const {
    const bool may_be_replaced = static_cast<std::size_t>(old.node) < now_.nodes() && now_[old].node >= 0;
    return may_be_replaced ? now_[old] : old;
  }
  Var var(ValueId old) const { return program_.var(now(old)); }
  Vars vars(std::span<const ValueId> old) const;
  /// Puts new nodes in place of node `index`, in the same region. The new nodes are those that were recorded since the
  /// last call of `close` or `close_in_new_region`.
  void close(std::int32_t index) { close(index, program_.regions[index]); }
  /// Like close, but in a new region, for nodes that come from a body.
  void close_in_new_region(std::int32_t index) { close(index, program_.region_count++); }
  /// Ends the pass: drops the nodes that the outputs do not need.
  void finish();
  /// Ends a pass that leaves no node which the outputs do not need.
  void finish_without_pruning();

 private:
  void close(std::int32_t index, std::int32_t region);

  Program& program_;
  ValueTable<ValueId> now_;          // per value: its replacement; the node is -1 if there is none
  std::vector<std::int32_t> order_;  // the new order of the program
  std::size_t seen_;                 // the number of nodes that were on the tape before or are already in `order_`
};

}  // namespace xtape
