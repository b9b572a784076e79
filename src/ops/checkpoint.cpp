// checkpoint: a range of nodes becomes a body, whose interior values are computed again when the gradient needs them.
#include "calls.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

const Op& checkpoint_op();

namespace {
/// The gradient is another checkpoint, whose body computes the forward pass again and then its adjoint.
Vars checkpoint_gradient(const GradientCall& call);

std::vector<ValueType> checkpoint_types(const Call& call) {
  if (call.body == nullptr) throw Error("needs a body: record it with xtape::checkpoint(function, inputs)");
  std::vector<ValueType> given, results;
  for (const ValueId& id : call.body->inputs()) given.push_back(call.body->type(id));
  if (given != call.inputs) throw ShapeError("the inputs of its body must have the types of its operands");
  for (const ValueId& id : call.body->results()) results.push_back(call.body->type(id));
  return results;
}
}  // namespace

const Op& checkpoint_op() {
  static const Op entry{
      .name = "checkpoint",
      .doc = R"(Applies a body to the inputs. No value inside the body is kept for the backward pass: the gradient
           contains a copy of the body and computes these values again, with the same random numbers (Chen
           et al., 2016, Training deep nets with sublinear memory cost).)",
      .inputs = {{"xs", Accept::any, Arity::many}},
      .outputs = {"ys"},
      .shape = checkpoint_types,
      .gradient = checkpoint_gradient,
      .expand = [](const ExpandCall& call) { return inline_body(call.tape, *call.node.body, call.inputs); }};
  return entry;
}

namespace {
Vars checkpoint_gradient(const GradientCall& call) {
  auto body = std::make_shared<Tape>(call.inputs[0].tape().blank());
  Vars outer = call.inputs;
  Vars inputs;
  const auto enter = [&](const Var& var) {
    return body->input("in" + std::to_string(body->size()), var.shape(), var.dtype());
  };
  for (const Var& input : call.inputs) inputs.push_back(enter(input));
  Vars cotangents;
  for (const Var& cotangent : call.cotangents) {
    if (cotangent.empty()) continue;
    cotangents.push_back(enter(cotangent));
    outer.push_back(cotangent);
  }
  const Vars results = inline_body(*body, *call.node.body, inputs);
  Vars reached;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!call.cotangents[i].empty()) reached.push_back(results[i]);
  Vars wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (call.needs[i]) wanted.push_back(inputs[i]);
  std::vector<ValueId> ids;
  for (const Var& gradient : call.grad(reached, wanted, cotangents)) ids.push_back(gradient.id());
  body->set_results(ids);
  const Vars recorded = record_call(call.inputs[0].tape(), checkpoint_op(), outer, {}, body);
  Vars gradients(call.inputs.size());
  for (std::size_t i = 0, next = 0; i < gradients.size(); ++i)
    if (call.needs[i]) gradients[i] = recorded[next++];
  return gradients;
}
}  // namespace

namespace {
Vars record_checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, const Caller& caller) {
  if (!function) throw Error("checkpoint: the function is empty");
  if (inputs.empty()) throw Error("checkpoint: needs at least one input");
  Tape tape = inputs[0].tape();
  const auto check = [&](const Vars& vars, const char* what) {
    for (const Var& var : vars)
      if (var.tape() != tape) throw HandleError(std::string("checkpoint: its ") + what + " belong to different tapes");
  };
  check(inputs, "inputs");
  if (tape.capacity() > 0) return function(inputs);  // a body cannot hold the states of the tape's caches
  const std::size_t size = tape.size();
  try {
    const Vars results = function(inputs);
    if (results.empty()) throw Error("checkpoint: the function gives no result");
    check(results, "inputs and results");
    const auto [body, outer] = tape.enclose(size, results);
    const auto in_call = tape.in_call(&checkpoint_op(), caller);
    return record_call(tape, checkpoint_op(), outer, {}, body);
  } catch (...) {
    tape.truncate(size);
    throw;
  }
}
}  // namespace

Vars checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, Caller caller) {
  return at_place(caller, [&] { return record_checkpoint(function, inputs, caller); });
}

}  // namespace xtape
