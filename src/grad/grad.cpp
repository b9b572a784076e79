// grad: checks the arguments of a reverse sweep and runs it.
#include "xtape/grad.hpp"

#include <algorithm>

#include "grad/sweep.hpp"
#include "tape/calls.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
void check_arguments(const Vars& outputs, const Vars& inputs, const Vars& cotangents, const GradOptions& options) {
  if (outputs.empty()) throw Error("grad: needs at least one output");
  if (!cotangents.empty() && cotangents.size() != outputs.size())
    throw Error("grad: got " + std::to_string(cotangents.size()) + " cotangents for " + std::to_string(outputs.size()) +
                " outputs");
  const Tape tape = outputs[0].tape();
  const auto check = [&](const Var& var, const char* what) {
    if (var.tape() != tape) throw HandleError(std::string("grad: an ") + what + " is of another tape");
    if (!is_floating(var.dtype()))
      throw DtypeError(std::string("grad: an ") + what + " must be a float array, got " + to_string(var.type()));
  };
  for (const Var& output : outputs) check(output, "output");
  for (const Var& input : inputs) check(input, "input");
  for (const Var& output : outputs)
    if (cotangents.empty() && !options.sum_outputs && count_of(output.shape()) != 1)
      throw ShapeError("grad: an output without cotangent must have one element, got " + to_string(output.type()) +
                       ": take its sum or mean, give cotangents, or set GradOptions::sum_outputs");
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (cotangents[i].tape() != tape) throw HandleError("grad: a cotangent is of another tape");
    if (cotangents[i].type() != outputs[i].type())
      throw ShapeError("grad: cotangent " + std::to_string(i) + " is " + to_string(cotangents[i].type()) +
                       ", its output " + to_string(outputs[i].type()));
  }
}

/// Describes the value for messages: "'w', float32 (2, 3)" or "the result of tanh, float32 (2,)".
std::string described(const Var& var) {
  const Node& node = var.node();
  return (node.name.empty() ? "the result of " + node.op->name : "'" + node.name + "'") + ", " + to_string(var.type());
}

/// Returns one gradient per input. The var is empty if no gradient reaches the input.
Vars swept(Tape tape, const Vars& outputs, const Vars& inputs, const Vars& cotangents) {
  std::size_t begin = tape.size();
  for (const Var& input : inputs) begin = std::min(begin, static_cast<std::size_t>(input.id().node));
  Vars seeds = cotangents;
  if (seeds.empty())
    for (const Var& output : outputs) seeds.push_back(ones_like(output));
  Sweep sweep(tape, begin);
  sweep.fuse();
  return sweep.run(outputs, inputs, seeds);
}

Vars recorded(Tape tape, const Vars& outputs, const Vars& inputs, const Vars& cotangents, const GradOptions& options) {
  const Rollback rollback(tape);
  Vars gradients = swept(tape, outputs, inputs, cotangents);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].empty()) continue;
    if (options.materialize_grads)
      gradients[i] = zeros_like(inputs[i]);
    else if (!options.allow_unused)
      throw Error("grad: no gradient reaches input " + std::to_string(i) + " (" + described(inputs[i]) +
                  "): leave it out, or set GradOptions::allow_unused or materialize_grads");
  }
  return gradients;
}

}  // namespace

Vars grad(const Vars& outputs, const Vars& inputs, const Vars& cotangents, const GradOptions& options, Caller caller) {
  return at_place(caller, [&] {
    check_arguments(outputs, inputs, cotangents, options);
    Tape tape = outputs[0].tape();
    const auto in_call = tape.in_call(nullptr, caller);
    return recorded(tape, outputs, inputs, cotangents, options);
  });
}

Vars grad(const Var& output, const Vars& inputs, const GradOptions& options, Caller caller) {
  return grad(Vars{output}, inputs, {}, options, caller);
}

NamedVars grad(const Vars& outputs, const NamedVars& inputs, const Vars& cotangents, const GradOptions& options,
               Caller caller) {
  Vars vars;
  for (const auto& input : inputs) vars.push_back(input.value);
  const Vars gradients = grad(outputs, vars, cotangents, options, caller);
  NamedVars named;
  for (const auto& input : inputs) named.add(input.name, gradients[named.size()]);
  return named;
}

NamedVars grad(const Var& output, const NamedVars& inputs, const GradOptions& options, Caller caller) {
  return grad(Vars{output}, inputs, {}, options, caller);
}

}  // namespace xtape
