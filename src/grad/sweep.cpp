#include "grad/sweep.hpp"

#include <algorithm>

#include "ops/recording/op_helpers.hpp"
#include "tape/graph.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape {

GradientCall gradient_call(const Tape& tape, std::int32_t index, const Node& node) {
  GradientCall call{{node.attributes}, *node.op, node};
  for (const ValueId& input : node.inputs) call.inputs.push_back(tape.var(input));
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    call.outputs.push_back(tape.var({index, static_cast<std::int32_t>(i)}));
  call.grad = [](const Vars& outputs, const Vars& inputs, const Vars& given) {
    return grad(outputs, inputs, given, {.materialize_grads = true});
  };
  return call;
}

void check_gradients(const GradientCall& call, const Vars& gradients) {
  if (gradients.size() != call.inputs.size())
    throw Error(call.op.name + ": its gradient rule gave " + std::to_string(gradients.size()) + " vars for " +
                std::to_string(call.inputs.size()) + " inputs");
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].empty() && call.needs[i] && gradients[i].type() != call.inputs[i].type())
      throw Error(call.op.name + ": its gradient rule gave " + to_string(gradients[i].type()) + " for input " +
                  std::to_string(i) + ", which is " + to_string(call.inputs[i].type()));
}

Vars Sweep::run(const Vars& outputs, const Vars& inputs, const Vars& cotangents) {
  std::size_t finish = begin_;
  for (const Var& output : outputs) finish = std::max(finish, static_cast<std::size_t>(output.id().node) + 1);
  for (const Var& input : inputs) wanted_.emplace(input.id(), Var());
  mark_dependents(finish);
  order_dependents(outputs);
  if (fuses_) find_fusions(outputs, inputs, finish);
  for (std::size_t i = 0; i < outputs.size(); ++i) contribute(outputs[i].id(), cotangents[i], order_.size() + 1);
  for (std::size_t index = finish; index-- > begin_;) visit(index);
  for (auto& wanted : wanted_)  // nodes before `begin_` were not visited
    if (wanted.second.empty()) wanted.second = total(wanted.first);
  Vars gradients;
  for (const Var& input : inputs) gradients.push_back(wanted_.at(input.id()));
  return gradients;
}

/// Marks the nodes that depend differentiably on an input.
void Sweep::mark_dependents(std::size_t finish) {
  depends_.assign(finish - begin_, false);
  for (std::size_t i = begin_; i < finish; ++i) {
    const Node& node = tape_.node(i);
    if (!node.op->differentiable) continue;
    depends_[i - begin_] = std::ranges::any_of(node.inputs, [&](ValueId id) { return depends(id); });
  }
}

/// Numbers the nodes that depend on an input in the order in which a depth-first walk from the outputs along the
/// operands leaves them. Sums of gradients take their terms in this order, because the order on the tape is not always
/// the program's: C++ leaves it to the compiler which operand of `f(x) + g(x)` is recorded first.
void Sweep::order_dependents(const Vars& outputs) {
  order_.assign(depends_.size(), 0);
  std::size_t last = 0;
  std::vector<std::pair<std::size_t, std::size_t>> path;  // a node, and how many of its operands were walked
  const auto enter = [&](ValueId id) {
    const auto index = static_cast<std::size_t>(id.node);
    if (index >= begin_ && depends_[index - begin_] && order_[index - begin_] == 0) path.emplace_back(index, 0);
  };
  for (const Var& output : outputs) {
    enter(output.id());
    while (!path.empty()) {
      auto& [index, walked] = path.back();
      const std::vector<ValueId>& operands = tape_.node(index).inputs;
      if (walked < operands.size()) {
        enter(operands[walked++]);
      } else {
        order_[index - begin_] = ++last;
        path.pop_back();
      }
    }
  }
}

/// Finds the fusions among the nodes that the outputs depend on. Fusions must not replace the outputs and inputs of
/// this sweep. They may replace all other values, although later calls may still read these values.
void Sweep::find_fusions(const Vars& outputs, const Vars& inputs, std::size_t finish) {
  TapeSegment segment{tape_, {}};
  for (const Var& output : outputs) segment.required.push_back(output.id());
  segment.nodes = needed_by(tape_, segment.required);
  segment.nodes.resize(finish);
  for (const Var& input : inputs) {
    if (static_cast<std::size_t>(input.id().node) >= finish) continue;
    segment.required.push_back(input.id());
    segment.leaves.push_back(input.id());
  }
  // A fused call has the numbers of its pattern as attributes. Gradients of its gradient could not reach them.
  for (std::size_t i = 0; i < finish; ++i)
    if (const Node& node = tape_.node(i); segment.nodes[i] && is_number(node) && !is_literal(node))
      segment.leaves.push_back({static_cast<std::int32_t>(i), 0});
  fusions_.emplace(ops_of(tape_), std::move(segment));
}

/// Returns the sum of the contributions to a value's cotangent, or an empty var if there are none.
Var Sweep::total(ValueId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return Var();
  std::vector<Contribution> parts = std::move(found->second);
  pending_.erase(found);
  std::ranges::stable_sort(parts, std::ranges::greater(), &Contribution::order);
  Var sum = parts[0].value;
  if (parts.size() > 1) {
    const auto in_site = tape_.in_site(tape_.node(id.node).site);
    for (std::size_t i = 1; i < parts.size(); ++i) sum = add(sum, parts[i].value);
  }
  return sum;
}

void Sweep::visit(std::size_t index) {
  const Node node = tape_.node(index);  // a copy, because gradient rules append to the tape
  Vars cotangents;
  bool reached = false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id{static_cast<std::int32_t>(index), static_cast<std::int32_t>(i)};
    cotangents.push_back(total(id));
    reached |= !cotangents.back().empty();
    const auto wanted = wanted_.find(id);
    if (wanted != wanted_.end()) wanted->second = cotangents.back();
  }
  if (!reached || !depends_[index - begin_] || declined_) return;
  const Fusion* fusion = fusions_ ? fusions_->at(static_cast<std::int32_t>(index)) : nullptr;
  if (fusion == nullptr || !flow_through_fused(*fusion, node, cotangents, order_[index - begin_]))
    flow_through(static_cast<std::int32_t>(index), node, cotangents);
}

/// Records the fused call and its gradient in place of the gradients of the calls that the fused call replaces. Returns
/// false and records nothing if the fused op has no gradient rule for these cotangents and inputs.
bool Sweep::flow_through_fused(const Fusion& fusion, const Node& root, const Vars& cotangents, std::size_t order) {
  for (std::size_t k = 0; k < cotangents.size(); ++k) {
    if (!cotangents[k].empty() && !fusion.gives(static_cast<std::int32_t>(k))) return false;
  }
  const std::size_t size = tape_.size();
  const auto in_site = tape_.in_site(root.site);
  const auto in_fused_call = tape_.in_fused_call();
  const Vars fused = record_fusion(fusion, tape_, [&](ValueId id) { return tape_.var(id); });
  Vars reached, given, wanted;
  for (const auto& [of_root, of_call] : fusion.outputs) {
    const Var& cotangent = cotangents[of_root];
    if (cotangent.empty()) continue;
    reached.push_back(fused[of_call]);
    given.push_back(cotangent);
  }
  for (const ValueId& id : fusion.values())
    if (is_floating(tape_.type(id).dtype) && depends(id)) wanted.push_back(tape_.var(id));
  Sweep inner(tape_, size);
  inner.take_own_gradients_only();
  const Vars found = inner.run(reached, wanted, given);
  if (inner.declined()) {
    tape_.truncate(size);
    return false;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!found[i].empty()) contribute(wanted[i].id(), found[i], order);
  return true;
}

/// Records the gradients of one call and adds them to the cotangents of its inputs.
void Sweep::flow_through(std::int32_t index, const Node& node, const Vars& cotangents) {
  const Op& op = *node.op;
  GradientCall call = gradient_call(tape_, index, node);
  call.cotangents = cotangents;
  for (const ValueId& input : node.inputs) call.needs.push_back(is_floating(tape_.type(input).dtype) && depends(input));

  const auto in_site = tape_.in_site(node.site);
  Vars gradients;
  if (op.gradient) gradients = op.gradient(call);
  if (gradients.empty() && own_gradients_only_) {
    declined_ = true;
    return;
  }
  if (gradients.empty()) gradients = through_expansion(call);
  check_gradients(call, gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].empty() && call.needs[i]) contribute(node.inputs[i], gradients[i], order_[index - begin_]);
}

/// Returns the gradient of an op without a gradient rule. Records the expansion of the op and differentiates the
/// expansion.
Vars Sweep::through_expansion(const GradientCall& call) {
  if (!call.op.expand)
    throw Error(call.op.name + ": has neither a gradient rule nor an expansion, so it cannot be differentiated");
  const std::size_t size = tape_.size();
  const Vars outputs = expansion(call.node, tape_, call.inputs);
  Vars reached;
  Vars cotangents;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (call.cotangents[i].empty()) continue;
    reached.push_back(outputs[i]);
    cotangents.push_back(call.cotangents[i]);
  }
  Vars wanted;  // each var once: the gradient of an input that is used twice is the sum over both uses
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const auto same = [&](const Var& var) { return var.id() == call.inputs[i].id(); };
    if (!call.needs[i] || std::ranges::any_of(wanted, same)) continue;
    wanted.push_back(call.inputs[i]);
    places.push_back(i);
  }
  Sweep inner(tape_, size);
  const Vars found = inner.run(reached, wanted, cotangents);
  Vars gradients(call.inputs.size());
  for (std::size_t i = 0; i < found.size(); ++i) gradients[places[i]] = found[i];
  return gradients;
}

}  // namespace xtape
