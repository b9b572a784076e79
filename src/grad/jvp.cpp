// The forward sweep. Records tangents as further nodes of the same tape.
#include <algorithm>

#include "grad/sweep.hpp"
#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// One sweep over the nodes from `begin` on. Uses a loop instead of recursion, because a tape may be long.
class Tangents {
 public:
  Tangents(const Tape& tape, std::size_t begin) : tape_(tape), begin_(begin) {}

  /// Returns one tangent per output. The var is empty if the tangent is 0 because no input reaches the output.
  Vars run(const Vars& outputs, const Vars& inputs, const Vars& tangents) {
    std::size_t finish = begin_;
    for (const Var& output : outputs) finish = std::max(finish, static_cast<std::size_t>(output.id().node) + 1);
    mark_needed(outputs, finish);
    for (std::size_t i = 0; i < inputs.size(); ++i) add_to(inputs[i].id(), tangents[i]);
    for (std::size_t index = begin_; index < finish; ++index) visit(static_cast<std::int32_t>(index));
    Vars found;
    for (const Var& output : outputs) found.push_back(of(output.id()));
    return found;
  }

 private:
  /// Marks the values that the outputs depend on differentiably, starting with node `begin`.
  void mark_needed(const Vars& outputs, std::size_t finish) {
    const auto need = [&](ValueId id) {
      if (static_cast<std::size_t>(id.node) < begin_ || !is_floating(type_of(tape_, id).dtype)) return;
      std::vector<bool>& of_node = needed_[static_cast<std::size_t>(id.node) - begin_];
      of_node.resize(node_of(tape_, id.node).outputs.size());
      of_node[id.output] = true;
    };
    needed_.resize(finish - begin_);
    for (const Var& output : outputs) need(output.id());
    for (std::size_t index = finish; index-- > begin_;) {
      const Node& node = node_of(tape_, static_cast<std::int32_t>(index));
      if (needed_[index - begin_].empty() || !node.op->differentiable) continue;
      for (const ValueId& input : node.inputs) need(input);
    }
  }

  Var of(ValueId id) const {
    const auto found = tangents_.find(id);
    return found == tangents_.end() ? Var() : found->second;
  }
  /// Adds `tangent` to the tangent of a value. If an input depends on other inputs, its tangent is the sum of its given
  /// tangent and the tangents that flow from those inputs.
  void add_to(ValueId id, const Var& tangent) {
    Var& present = tangents_[id];
    present = present.empty() ? tangent : add(present, tangent);
  }

  void visit(std::int32_t index) {
    const std::vector<bool>& needs = needed_[static_cast<std::size_t>(index) - begin_];
    const Node node = tape_.node(index);  // a copy, because the code below appends to the tape
    Vars given;
    for (const ValueId& input : node.inputs) given.push_back(of(input));
    const bool reached = std::ranges::any_of(given, [](const Var& tangent) { return !tangent.empty(); });
    if (needs.empty() || !reached || !node.op->differentiable) return;
    const auto in_site = tape_.in_site(node.site);
    const Vars found = through(gradient_call(tape_, index, node), given, needs);
    if (found.size() != needs.size())
      throw Error(node.op->name + ": its tangent rule gave " + std::to_string(found.size()) + " vars for " +
                  std::to_string(needs.size()) + " outputs");
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (found[k].empty() || !needs[k]) continue;
      const ValueId id{index, static_cast<std::int32_t>(k)};
      if (found[k].type() != node.outputs[k])
        throw Error(node.op->name + ": its tangent rule gave " + to_string(found[k].type()) + " for output " +
                    std::to_string(k) + ", which is " + to_string(node.outputs[k]));
      add_to(id, found[k]);
    }
  }

  /// Returns the tangents of the outputs of one call.
  Vars through(GradientCall call, const Vars& given, const std::vector<bool>& needs) {
    const auto of_body = [](const Vars& outputs, const Vars& inputs, const Vars& tangents) {
      return jvp(outputs, inputs, tangents);
    };
    if (call.op.derivative.tangent)
      return call.op.derivative.tangent(
          {{call.attributes}, call.op, call.node, call.inputs, call.outputs, given, needs, of_body});
    if (call.op.gradient)
      if (const auto found = transposed(call, given, needs)) return *found;
    if (!call.op.expand)
      throw Error(call.op.name + ": has neither a gradient rule nor an expansion, so it cannot be differentiated");
    const std::size_t size = tape_.size();
    const Vars outputs = expansion(call.node, tape_, call.inputs);
    Vars varying, tangents;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto same = [&](const Var& var) { return var.id() == call.inputs[i].id(); };
      if (given[i].empty() || std::ranges::any_of(varying, same)) continue;
      varying.push_back(call.inputs[i]);
      tangents.push_back(given[i]);
    }
    return Tangents(tape_, size).run(outputs, varying, tangents);
  }

  /// Uses the gradient rule. The gradients are linear in the cotangents u. The derivative of <gradient(u), tangents>
  /// with respect to u is therefore the Jacobian times the tangents, for any u. Returns nothing if the rule declines.
  /// The result does not need the nodes that depend on u, so no player computes them.
  std::optional<Vars> transposed(GradientCall& call, const Vars& given, const std::vector<bool>& needs) {
    const std::size_t size = tape_.size();
    Vars cotangents;
    for (std::size_t k = 0; k < needs.size(); ++k) {
      call.cotangents.push_back(needs[k] ? zeros_like(call.outputs[k]) : Var());
      if (needs[k]) cotangents.push_back(call.cotangents[k]);
    }
    for (const Var& tangent : given) call.needs.push_back(!tangent.empty());
    const Vars gradients = call.op.gradient(call);
    if (gradients.empty()) {
      tape_.truncate(size);
      call.cotangents.clear();
      call.needs.clear();
      return std::nullopt;
    }
    check_gradients(call, gradients);
    Vars reached, along;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].empty() || !call.needs[i]) continue;
      reached.push_back(gradients[i]);
      along.push_back(given[i]);
    }
    const Vars found = Sweep(tape_, size).run(reached, cotangents, along);
    Vars outputs(needs.size());
    for (std::size_t k = 0, next = 0; k < needs.size(); ++k)
      if (needs[k]) outputs[k] = found[next++];
    return outputs;
  }

  Tape tape_;
  std::size_t begin_;
  // per node from `begin_` on: a flag per output, or empty if no output is needed
  std::vector<std::vector<bool>> needed_;
  std::unordered_map<ValueId, Var> tangents_;
};

void check_arguments(const Vars& outputs, const Vars& inputs, const Vars& tangents) {
  if (outputs.empty() || inputs.empty()) throw Error("jvp: needs at least one output and one input");
  if (tangents.size() != inputs.size())
    throw Error("jvp: got " + std::to_string(tangents.size()) + " tangents for " + std::to_string(inputs.size()) +
                " inputs");
  const Tape tape = outputs[0].tape();
  const auto check = [&](const Var& var, const char* what) {
    if (var.tape() != tape) throw HandleError(std::string("jvp: ") + what + " is of another tape");
    if (!is_floating(var.dtype()))
      throw DtypeError(std::string("jvp: ") + what + " must be a float array, got " + to_string(var.type()));
  };
  for (const Var& output : outputs) check(output, "an output");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check(inputs[i], "an input");
    check(tangents[i], "a tangent");
    if (tangents[i].type() != inputs[i].type())
      throw ShapeError("jvp: tangent " + std::to_string(i) + " is " + to_string(tangents[i].type()) + ", its input " +
                       to_string(inputs[i].type()));
  }
}
}  // namespace

Vars jvp(const Vars& outputs, const Vars& inputs, const Vars& tangents, Caller caller) {
  return at_place(caller, [&] {
    check_arguments(outputs, inputs, tangents);
    Tape tape = outputs[0].tape();
    const auto in_call = tape.in_call(nullptr, caller);
    const Rollback rollback(tape);
    const std::size_t size = tape.size();
    std::size_t begin = size;
    for (const Var& input : inputs) begin = std::min(begin, static_cast<std::size_t>(input.id().node));
    Vars found = Tangents(tape, begin).run(outputs, inputs, tangents);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (found[i].empty()) found[i] = zeros_like(outputs[i]);
    for (std::size_t i = size; i < tape.size(); ++i) editable(tape, static_cast<std::int32_t>(i)).early = true;
    return found;
  });
}

}  // namespace xtape
