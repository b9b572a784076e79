#include "function.hpp"

#include "xtape/ops.hpp"

namespace xtape::fuzz {

namespace {
Vars floats_among(const Vars& vars) {
  Vars floats;
  for (const Var& var : vars)
    if (is_floating(var.dtype()) && count_of(var.shape()) > 0) floats.push_back(var);
  return floats;
}
}  // namespace

Function::Function(const Recipe& recipe, Sources how, Floats floats) : subject(recipe.mode, floats, how) {
  recipe.record(subject);
  if (recipe.mode == Mode::predict) return;
  subject.carries.clear();
  subject.avoid_ties();
  inputs = floats_among(subject.inputs);
  outputs = floats_among(subject.outputs);
}

std::unique_ptr<Function> function_of(const Recipe& recipe) {
  try {
    auto function = std::make_unique<Function>(recipe);
    if (function->inputs.empty() || function->outputs.empty()) return nullptr;
    for (const Var& output : function->outputs)
      if (output.dtype() != Dtype::float64) return nullptr;  // a mean of integers
    return function;
  } catch (const Error&) {  // the program mixes widths and cannot be recorded in one width
    return nullptr;
  }
}

bool withholds(const Tape& tape) {
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    const std::string& op = node.op->name;
    if (op == "stop_gradient" || op == "cache" || (node.body && withholds(*node.body))) return true;
  }
  return false;
}

Var inner(const Vars& a, const Vars& b) {
  Var total;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Var product = sum(a[i] * b[i]);
    total = total.empty() ? product : total + product;
  }
  return total;
}

Vars numbers_like(Tape tape, const Vars& vars, std::uint64_t seed) {
  Vars numbers;
  for (const Var& var : vars) numbers.push_back(tape.constant(made(var.type(), {-1, 1, seed + numbers.size()}, 0)));
  return numbers;
}

}  // namespace xtape::fuzz
