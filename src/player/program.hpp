/// The program of a player: the nodes that it plays. Each pass rewrites a program into a new one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph.hpp"
#include "xtape/op.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// The node of the caller's tape that a value comes from. The value replaces an output of that node, or is computed on
/// the way to one.
struct Origin {
  std::int32_t node = -1;
  const Op* op = nullptr;
};
std::string to_string(const Origin& origin);  ///< As in the printed tape of the caller: "#12 add".

struct Program {
  /// An empty program, for nodes of `like` or their replacements.
  explicit Program(const Tape& like) : tape(like.blank()) {}

  Tape tape;
  std::vector<ValueId> outputs;                      ///< The outputs of the player, then those of the carries.
  std::vector<std::pair<ValueId, ValueId>> carries;  ///< (input, output); the input is {-1, 0} if nothing reads it.
  std::vector<std::int32_t> regions;                 ///< Per node: 0, or the number of the body it came from.
  std::int32_t region_count = 1;
  ValueTable<Origin> origins;

  Var var(ValueId id) const { return tape.var(id); }
  const Node& node(std::int32_t index) const { return tape.node(static_cast<std::size_t>(index)); }
  std::string label(ValueId id) const { return to_string(origins[id]); }  ///< Of the value's origin.
};

/// The program of the nodes of `tape` that `outputs` and the outputs of the carries need. Throws if a var belongs to
/// another tape or a carry is not valid.
Program extract(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries);

/// The nodes that use each value: their indices in ascending order, repeated for each use.
class Users {
 public:
  explicit Users(const Tape& tape);
  std::span<const std::int32_t> of(ValueId id) const { return {users_.data() + ends_[id] - counts_[id], counts_[id]}; }
  /// The users of all outputs of a node.
  std::span<const std::int32_t> of(std::int32_t node) const {
    const auto counts = counts_.of(node);
    if (counts.empty()) return {};
    const std::size_t begin = ends_.of(node).front() - counts.front();
    return {users_.data() + begin, ends_.of(node).back() - begin};
  }

 private:
  ValueTable<std::size_t> counts_, ends_;
  std::vector<std::int32_t> users_;
};

/// Builds the next program from the last, node by node in order.
class Rewriter {
 public:
  explicit Rewriter(const Program& from);

  const Program& from() const { return from_; }
  /// The next program's tape, to record on.
  Tape& tape() { return copier_.to(); }
  /// Copies node `index` of the last program.
  void keep(std::int32_t index) { keep_as(index, from_.node(index)); }
  /// The same, changed to `node`, whose inputs are values of the last program.
  void keep_as(std::int32_t index, Node node);
  /// Replaces value `old` of the last program by `fresh`.
  void replace(ValueId old, const Var& fresh);
  /// The var that replaces a value of the last program.
  Var now(ValueId old) const { return to_.tape.var(copier_.now(old)); }
  Vars now(const std::vector<ValueId>& old) const;
  bool known(ValueId old) const { return copier_.known(old); }  ///< Whether the value has a replacement yet.
  /// Assigns the nodes recorded since the last call to node `index` of the last program, in the region of that node.
  void close(std::int32_t index) { close(index, from_.regions[static_cast<std::size_t>(index)]); }
  /// The same in a new region, for nodes that come from a body.
  void close_in_new_region(std::int32_t index) { close(index, to_.region_count++); }
  /// Returns the next program, without the nodes that its outputs do not need.
  Program finish();

 private:
  void close(std::int32_t index, std::int32_t region);
  void begin_origins();

  const Program& from_;
  Program to_;
  Copier copier_;
};

}  // namespace xtape
