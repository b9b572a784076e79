/// The reverse sweep. Private to grad.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rewrite/fusions.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// Returns the argument of the gradient rule of node `index`. Its cotangents and needs are not set.
GradientCall gradient_call(const Tape& tape, std::int32_t index, const Node& node);
/// Throws Error if the rule did not return one var per input, or if a needed gradient does not have the type of its
/// input.
void check_gradients(const GradientCall& call, const Vars& gradients);

/// A term of a value's cotangent. A sum takes its terms from the highest order to the lowest.
struct Contribution {
  Var value;
  std::size_t order;
};

/// One sweep from the outputs back to the inputs, over the nodes from `begin` on. Uses a loop instead of recursion,
/// because a tape may be long.
class Sweep {
 public:
  Sweep(const Tape& tape, std::size_t begin) : tape_(tape), begin_(begin) {}

  /// Replaces calls that match a fusion rule by the fused call before differentiating them.
  void fuse() { fuses_ = true; }
  /// Tells the sweep not to differentiate ops through their expansions.
  void take_own_gradients_only() { own_gradients_only_ = true; }
  /// Returns whether an op lacked a gradient rule for a required gradient, after take_own_gradients_only.
  bool declined() const { return declined_; }

  /// Returns one gradient per input. The var is empty if no gradient reaches the input.
  Vars run(const Vars& outputs, const Vars& inputs, const Vars& cotangents);

 private:
  void mark_dependents(std::size_t finish);
  void order_dependents(const Vars& outputs);
  void find_fusions(const Vars& outputs, const Vars& inputs, std::size_t finish);
  bool depends(ValueId id) const {
    const auto index = static_cast<std::size_t>(id.node);
    return (index >= begin_ && index - begin_ < depends_.size() && depends_[index - begin_]) || wanted_.count(id) != 0;
  }
  void contribute(ValueId id, const Var& value, std::size_t order) { pending_[id].push_back({value, order}); }
  Var total(ValueId id);
  void visit(std::size_t index);
  bool flow_through_fused(const Fusion& fusion, const Node& root, const Vars& cotangents, std::size_t order);
  void flow_through(std::int32_t index, const Node& node, const Vars& cotangents);
  Vars through_expansion(const GradientCall& call);

  Tape tape_;
  std::size_t begin_;
  bool fuses_ = false;
  bool own_gradients_only_ = false;
  bool declined_ = false;
  std::optional<Fusions> fusions_;
  std::vector<bool> depends_;
  std::vector<std::size_t> order_;  // by node from `begin_` on: see order_dependents
  std::unordered_map<ValueId, std::vector<Contribution>> pending_;
  std::map<ValueId, Var> wanted_;
};

}  // namespace xtape
