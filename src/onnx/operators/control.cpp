// Operators with graphs inside.
#include "operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"

namespace xtape::onnx {

namespace {
/// Records the branch that the condition selects. The condition must be known at record time.
Vars branch(NodeCall& node) {
  const bool condition = node.known_integer(0) != 0;
  node.ignore("then_branch");
  node.ignore("else_branch");
  return node.record(condition ? "then_branch" : "else_branch", {});
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
  std::vector<Vars> outputs;
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
    outputs.resize(static_cast<std::size_t>(results.end() - end));
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(end[static_cast<std::ptrdiff_t>(i)]);
  }
  if (outputs.empty()) node.ignore("body");
  for (const Vars& each : outputs) states.push_back(stack(each));
  return states;
}

/// The inputs are the states, then sequences whose slices along the first axis the body receives. The body returns
/// states and outputs.
Vars scanned(NodeCall& node) {
  if (node.opset() < 9) node.fail("versions before 9 are not supported");
  const std::int64_t count = node.integer("num_scan_inputs");
  const Vars& all = node.all();
  if (count < 1 || static_cast<std::uint64_t>(count) > all.size())
    node.fail("num_scan_inputs is " + std::to_string(count) + ", with " + std::to_string(all.size()) + " inputs");
  const auto first = all.end() - static_cast<std::ptrdiff_t>(count);
  const Vars init(all.begin(), first), inputs(first, all.end());
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
  done.states.insert(done.states.end(), done.outputs.begin(), done.outputs.end());
  return done.states;
}
}  // namespace

const Operators& control_operators() {
  static const Operators operators = {{"If", branch}, {"Loop", loop}, {"Scan", scanned}};
  return operators;
}

}  // namespace xtape::onnx
