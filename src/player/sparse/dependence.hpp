/// Which elements of a value depend on which elements of an input, found on the tape without playing data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "sparse/index_sets.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// Per element of a value, in row-major order: the elements of the input that it depends on. Null: on none.
using Dependence = std::shared_ptr<const std::vector<IndexSets::Id>>;

/// A call whose inputs have dependences, for the rules below.
struct DependenceCall {
  const Node& node;
  Tape tape;                      ///< The tape with the node.
  std::vector<ValueType> inputs;  ///< Types.
  std::vector<Dependence> given;  ///< Per input.
  std::vector<bool> read;         ///< Per output: whether its dependence is needed. Rules may leave out others.
  /// The value of an input that depends on constants only; null for others. Plays it when first asked.
  std::function<const Array*(std::size_t input)> known;
  IndexSets& sets;

  OpCall recorded() const { return {*node.op, node.attributes, inputs, node.outputs, node.body.get(), node.site}; }
};
/// Per output; nothing where the rule does not apply.
using Dependences = std::optional<std::vector<Dependence>>;

/// Ops that only move elements: each element of the output is one of an input, or a constant. Which one shows the
/// layout of a view, or else a play of the call with the numbers of the elements in place of the elements.
Dependences through_moves(const DependenceCall& call);
/// Lowering::tile: element i depends on what the elements i of the broadcast operands depend on.
Dependences through_elements(const DependenceCall& call);
/// Ops to which each element of an input contributes in at most one place: reductions, index_add. Which place shows a
/// play of the gradient of the call with the numbers of the output's elements as cotangent.
Dependences through_sums(const DependenceCall& call);
/// einsum: what the factors of the summed terms depend on, without terms in which a constant factor is 0.
Dependences through_product(const DependenceCall& call);
/// cumsum: all elements before.
Dependences through_running_sum(const DependenceCall& call);
/// Any call: every element depends on all that the inputs depend on.
Dependences through_anything(const DependenceCall& call);

/// Sets that meet in places of a value.
class Meetings {
 public:
  void add(std::int64_t place, IndexSets::Id set) {
    if (set != IndexSets::none) all_.emplace_back(place, set);
  }
  /// The union at each of `count` places.
  std::vector<IndexSets::Id> united(IndexSets& sets, std::int64_t count);

 private:
  std::vector<std::pair<std::int64_t, IndexSets::Id>> all_;
};

/// The offsets of a layout's elements, in row-major order.
std::vector<std::int64_t> places_of(const Layout& layout);
/// Per element: whether it is 0.
std::vector<bool> zeros_of(const Array& array);

/// One walk over a tape, from values of known dependence to others. A loop, not a recursion, because a tape may be
/// long.
class DependenceWalk {
 public:
  /// `nodes` is how many nodes of bodies may be walked through, each step of a scan anew; further bodies count as calls
  /// of which nothing is known.
  DependenceWalk(const Tape& tape, IndexSets& sets, std::int64_t& nodes) : tape_(tape), sets_(sets), nodes_(nodes) {}

  void set(ValueId id, Dependence dependence) { found_[id] = std::move(dependence); }
  std::vector<Dependence> run(const std::vector<ValueId>& outputs);

 private:
  void mark_constants(std::size_t finish);
  void visit(std::int32_t index);
  /// custom_gradient: the transposed dependence of the gradients, which are the body, on the cotangents.
  Dependences through_own_gradient(const DependenceCall& call);
  Dependences through_expansion(const DependenceCall& call);
  const Array* known(ValueId id);

  Tape tape_;
  IndexSets& sets_;
  std::int64_t& nodes_;
  ValueTable<bool> read_;       // whether a needed node reads the value
  std::vector<bool> constant_;  // per node: whether it depends on constants only
  std::unordered_map<ValueId, Array> known_;
  std::unordered_map<ValueId, Dependence> found_;
};

}  // namespace xtape
