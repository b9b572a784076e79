// Operators with graphs inside.
#include <algorithm>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"

namespace xtape::onnx {

namespace {
/// Records the branch that the condition selects. The condition must be known at record time.
Vars branch(NodeCall& node) {
  const bool condition = node.known_integer(0) != 0;
  node.ignore("then_branch");
  node.ignore("else_branch");
  const char* chosen = condition ? "then_branch" : "else_branch";
  node.set_elements(node.graph(chosen), 0);
  return node.record(chosen, {});
}

/// Returns the stack of an output of no steps. Sizes that the graph does not declare are 0.
Var no_steps(NodeCall& node, const Value& output) {
  Shape shape{0};
  if (output.sizes)
    for (const std::int64_t size : *output.sizes) shape.push_back(std::max(size, std::int64_t{0}));
  return zeros(node.tape(), shape, dtype_in(output.element, node.setting(), "'" + output.name + "'"));
}

/// Unrolls the body. The number of iterations must be known at record time. The body maps (step, condition, states) to
/// (condition, states, outputs).
Vars loop(NodeCall& node) {
  constexpr std::int64_t most = 1 << 12;
  // limit for the tape, because the numbers of iterations of nested loops multiply
  constexpr std::size_t most_nodes = 1 << 22;
  const std::int64_t steps = node.has(0) ? node.known_integer(0) : open_end;
  bool goes_on = !node.has(1) || node.known_integer(1) != 0;
  Vars states;
  for (std::size_t i = 2; i < node.size(); ++i) states.push_back(node.at(i));
  const Graph& body = node.graph("body");
  std::vector<Vars> outputs(body.outputs.size() - std::min(body.outputs.size(), 1 + states.size()));
  for (std::int64_t step = 0; step < steps && goes_on; ++step) {
    if (step == most || node.tape().size() > most_nodes)
      node.fail("it runs too often: more than " + std::to_string(most) + " times, or until the tape has more than " +
                std::to_string(most_nodes) + " nodes");
    Vars inputs = {node.tape().constant(step, Dtype::int64), node.tape().constant(1, Dtype::boolean)};
    inputs.insert(inputs.end(), states.begin(), states.end());
    const Vars results = node.record("body", inputs);
    if (results.size() <= states.size()) node.fail("the body has " + std::to_string(results.size()) + " outputs");
    goes_on = node.known_integer(results[0], "the body's condition") != 0;
    const auto end = results.begin() + 1 + std::ssize(states);
    std::copy(results.begin() + 1, end, states.begin());
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(end[static_cast<std::ptrdiff_t>(i)]);
  }
  node.set_elements(body, 1);
  const std::size_t first = body.outputs.size() - outputs.size();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    states.push_back(outputs[i].empty() ? no_steps(node, body.outputs[first + i]) : stack(outputs[i]));
  return states;
}

/// Reads an attribute that has a number for each of `count` sequences.
Integers for_sequences(NodeCall& node, const std::string& name, std::size_t count) {
  const Integers numbers = node.integers(name, Integers(count, 0));
  if (numbers.size() != count)
    node.fail("'" + name + "' has " + std::to_string(numbers.size()) + " numbers, not " + std::to_string(count));
  return numbers;
}

/// Returns x, reversed along its first axis if the direction is 1.
Var in_direction(NodeCall& node, const Var& x, std::int64_t direction) {
  if (direction != 0 && direction != 1) node.fail("a direction is " + std::to_string(direction) + ", not 0 or 1");
  return direction == 0 ? x : flip(x, {0});
}

/// Returns x with axis `from` moved to place `to`.
Var moved_axis(const Var& x, std::int64_t from, std::int64_t to) {
  const std::size_t source = normal_axis(from, x.rank()), place = normal_axis(to, x.rank());
  Axes order;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i != source) order.push_back(static_cast<std::int64_t>(i));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), static_cast<std::int64_t>(source));
  return source == place ? x : transpose(x, order);
}

/// The inputs are the states, then sequences whose slices along an axis the body receives. The body returns states and
/// outputs.
Vars scanned(NodeCall& node) {
  if (node.opset() < 9) node.fail("versions before 9 are not supported");
  const std::int64_t count = node.integer("num_scan_inputs");
  const Vars& all = node.all();
  if (count < 1 || static_cast<std::uint64_t>(count) > all.size())
    node.fail("num_scan_inputs is " + std::to_string(count) + ", with " + std::to_string(all.size()) + " inputs");
  const auto first = all.end() - static_cast<std::ptrdiff_t>(count);
  const Vars init(all.begin(), first);
  Vars inputs(first, all.end());
  const Integers axes = for_sequences(node, "scan_input_axes", inputs.size());
  const Integers directions = for_sequences(node, "scan_input_directions", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = in_direction(node, moved_axis(inputs[i], axes[i], 0), directions[i]);
  ScanOptions options;
  options.axis = 0;
  const ScanFunction cell = [&](const Vars& slices, const Vars& states) -> std::pair<Vars, Vars> {
    Vars given = states;
    given.insert(given.end(), slices.begin(), slices.end());
    const Vars results = node.record("body", given);
    if (results.size() < states.size()) node.fail("the body has " + std::to_string(results.size()) + " outputs");
    const auto end = results.begin() + std::ssize(states);
    return {Vars(end, results.end()), Vars(results.begin(), end)};
  };
  Scanned done = scan(cell, inputs, init, options);
  node.set_elements(node.graph("body"), 0);
  const Integers to = for_sequences(node, "scan_output_axes", done.outputs.size());
  const Integers written = for_sequences(node, "scan_output_directions", done.outputs.size());
  for (std::size_t i = 0; i < done.outputs.size(); ++i)
    done.outputs[i] = moved_axis(in_direction(node, done.outputs[i], written[i]), 0, to[i]);
  done.states.insert(done.states.end(), done.outputs.begin(), done.outputs.end());
  return done.states;
}
}  // namespace

const Operators& control_operators() {
  static const Operators operators = {{"If", branch, own}, {"Loop", loop, own}, {"Scan", scanned, own}};
  return operators;
}

}  // namespace xtape::onnx
