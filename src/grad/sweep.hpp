/// The reverse sweep. Private to grad.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fusions.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// The argument of the gradient rule of node `index`, without cotangents and needs.
GradientCall gradient_call(const Tape& tape, std::int32_t index, const Node& node);
/// Throws Error unless the rule gave one var per input, and those that are needed have the type of their inputs.
void check_gradients(const GradientCall& call, const Vars& gradients);

/// One sweep from the outputs back to the inputs, over the nodes from `begin` on. A loop, not a recursion, because a
/// tape may be long.
class Sweep {
 public:
  Sweep(const Tape& tape, std::size_t begin) : tape_(tape), begin_(begin) {}

  /// Replaces calls that match a fusion rule by the fused call before differentiating them.
  void fuse() { fuses_ = true; }
  /// Does not differentiate an op through its expansion.
  void take_own_gradients_only() { own_gradients_only_ = true; }
  /// Whether an op had no gradient rule for a required gradient, after take_own_gradients_only.
  bool declined() const { return declined_; }

  /// One gradient per input; an empty var if no gradient reaches the input.
  Vars run(const Vars& outputs, const Vars& inputs, const Vars& cotangents);

 private:
  void mark_dependents(std::size_t finish);
  void find_fusions(const Vars& outputs, const Vars& inputs, std::size_t finish);
  bool depends(ValueId id) const {
    const auto index = static_cast<std::size_t>(id.node);
    return (index >= begin_ && index - begin_ < depends_.size() && depends_[index - begin_]) || wanted_.count(id) != 0;
  }
  void contribute(ValueId id, const Var& value) { pending_[id].push_back(value); }
  Var total(ValueId id);
  void visit(std::size_t index);
  bool flow_through_fused(const Fusion& fusion, const Node& root, const Vars& cotangents);
  void flow_through(std::int32_t index, const Node& node, const Vars& cotangents);
  Vars through_expansion(const GradientCall& call);

  Tape tape_;
  std::size_t begin_;
  bool fuses_ = false;
  bool own_gradients_only_ = false;
  bool declined_ = false;
  std::optional<Fusions> fusions_;
  std::vector<bool> depends_;
  std::unordered_map<ValueId, Vars> pending_;
  std::map<ValueId, Var> wanted_;
};

}  // namespace xtape
