/// Finds on the tape, without playing data, which elements of a value depend on which elements of an input.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tape/graph.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

// Sets of indices, for sparsity patterns.

/// Sorted sets of indices from 0 to count - 1. Equal sets are stored once and have the same id. A set that many
/// elements share is therefore stored once, and comparing two sets only compares ids.
class IndexSets {
 public:
  using Id = std::int32_t;
  static constexpr Id none = 0;                                ///< The empty set.
  static constexpr std::int64_t most = std::int64_t{1} << 30;  ///< The limit of indices in all sets together.

  /// Throws ShapeError if there are more than 2^31 - 1 indices.
  explicit IndexSets(std::int64_t count);

  Id single(std::int64_t index);
  Id united(Id a, Id b);
  /// Returns the union of all sets in `ids`. Reorders `ids`.
  Id united(std::vector<Id>& ids);
  std::span<const std::int32_t> of(Id id) const {
    return {indices_.data() + begins_[id], begins_[id + 1] - begins_[id]};
  }

 private:
  Id interned(std::span<const std::int32_t> set);
  void grow();

  std::vector<std::int32_t> indices_;      // the indices of all sets, one set after the other
  std::vector<std::size_t> begins_{0, 0};  // per set: the index of its first entry; at the end: the end of the last set
  std::vector<std::uint64_t> hashes_{0};   // per set
  std::vector<Id> table_;                  // open addressing by hash; `none` where empty
  std::vector<bool> seen_;                 // per index: scratch of a union; all false between calls
  std::vector<std::int32_t> fresh_, together_;  // scratch
};

/// For each element of a value in row-major order, the set of input elements on which it depends. Null if no element of
/// the value depends on an input element.
using Dependence = std::shared_ptr<const std::vector<IndexSets::Id>>;

/// A call whose inputs have dependences, for the rules below.
struct DependenceCall {
  const Node& node;
  Tape tape;                           ///< The tape with the node.
  std::vector<ValueType> inputs = {};  ///< The types of the inputs.
  std::vector<Dependence> given = {};  ///< Per input: its dependence.
  /// Per output: whether its dependence is needed. Rules may leave out the other outputs.
  std::vector<bool> read = {};
  /// If an input depends only on constants, returns its value, which is computed at the first request. Otherwise
  /// returns null.
  std::function<const Array*(std::size_t input)> known;
  IndexSets& sets;

  OpCall recorded() const { return {{node.attributes}, *node.op, inputs, node.outputs, node.body.get(), node.site}; }
};
/// The dependences of all outputs. Nothing if the rule does not apply.
using Dependences = std::optional<std::vector<Dependence>>;

/// For ops that only move elements: each element of the output is an element of an input or a constant. To find this
/// element, the rule reads the layout of a view, and plays any other call on the numbers of elements.
Dependences through_moves(const DependenceCall& call);
/// For ops with Lowering::tile: element i depends on everything on which elements i of the broadcast operands depend.
Dependences through_elements(const DependenceCall& call);
/// For ops in which each element of an input contributes to at most one element of the output: reductions, index_add.
/// To find this output element, the rule plays the gradient of the call, with the numbers of the output's elements as
/// cotangent.
Dependences through_sums(const DependenceCall& call);
/// For einsum: an element depends on everything on which the factors of its terms depend. Terms in which a constant
/// factor is 0 do not count.
Dependences through_product(const DependenceCall& call);
/// For cumsum: an element depends on all elements up to and including its own place.
Dependences through_running_sum(const DependenceCall& call);
/// For any call: every element depends on everything on which the inputs depend.
Dependences through_anything(const DependenceCall& call);

/// Collects sets of input elements for the elements of a value. An element can get several sets.
class CollectedSets {
 public:
  void add(std::int64_t place, IndexSets::Id set) {
    if (set != IndexSets::none) all_.emplace_back(place, set);
  }
  /// Returns for each of the `count` elements the union of its sets.
  std::vector<IndexSets::Id> united(IndexSets& sets, std::int64_t count);

 private:
  std::vector<std::pair<std::int64_t, IndexSets::Id>> all_;
};

/// Returns the offsets of a layout's elements in row-major order.
std::vector<std::int64_t> places_of(const Layout& layout);
/// Returns for each element whether it is 0.
std::vector<bool> zeros_of(const Array& array);

/// One walk over a tape, from values of known dependence to other values. Uses a loop and not recursion, because a tape
/// may be long.
class DependenceWalk {
 public:
  /// `nodes` is the number of nodes in bodies that the walk may visit. A node in the body of a scan counts once for
  /// each step. Beyond this number, calls with bodies count as calls about which nothing is known.
  DependenceWalk(const Tape& tape, IndexSets& sets, std::int64_t& nodes) : tape_(tape), sets_(sets), nodes_(nodes) {}

  void set(ValueId id, Dependence dependence) { found_[id] = std::move(dependence); }
  std::vector<Dependence> run(const std::vector<ValueId>& outputs);

 private:
  void mark_constants(std::size_t finish);
  void visit(std::int32_t index);
  /// For custom_gradient: the body computes gradients from cotangents. The dependence of the values is the transpose of
  /// the dependence of the gradients on the cotangents.
  Dependences through_own_gradient(const DependenceCall& call);
  Dependences through_expansion(const DependenceCall& call);
  const Array* known(ValueId id);

  Tape tape_;
  IndexSets& sets_;
  std::int64_t& nodes_;
  ValueTable<bool> read_;       // whether a needed node reads the value
  std::vector<bool> constant_;  // per node: whether it depends only on constants
  std::unordered_map<ValueId, Array> known_;
  std::unordered_map<ValueId, Dependence> found_;
};

}  // namespace xtape
