// Dropout and scans. The bodies of scans become graphs inside nodes.
#include "onnx/writing.hpp"
#include "ops/scan/scan.hpp"

namespace xtape::onnx {

namespace {
/// Dropout does nothing, because the file is for inference.
Names dropout(const WriteCall& call) {
  return {call.inputs[0]};
}

/// Returns the value with its steps along the first axis, in the order in which the scan runs. With `back`, does the
/// inverse.
std::string in_steps(const WriteCall& call, const std::string& value, std::int64_t axis, std::size_t rank, bool reverse,
                     bool back) {
  std::string steps = value;
  const auto flip = [&] {
    if (!reverse) return;
    const std::int64_t before_all = -(std::int64_t{1} << 62);
    steps = call.add("Slice", {steps, call.list({-1}), call.list({before_all}), call.list({0}), call.list({-1})});
  };
  Integers axes;
  if (back) {
    flip();
    for (std::int64_t i = 1; i <= axis; ++i) axes.push_back(i);
    axes.push_back(0);
    for (std::int64_t i = axis + 1; i < static_cast<std::int64_t>(rank); ++i) axes.push_back(i);
    return call.transposed(steps, axes);
  }
  axes.push_back(axis);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i)
    if (i != axis) axes.push_back(i);
  steps = call.transposed(steps, axes);
  flip();
  return steps;
}

Names scan(const WriteCall& call) {
  const ScanForm form(call.attributes);
  const Tape& step = *call.node.body;
  const std::vector<ValueId> given = step.inputs();
  const std::size_t sequences = form.sequences(), states = static_cast<std::size_t>(form.states),
                    stacked = form.stacked();
  if (form.length == 0) return {};
  GraphWriter graph(call.graph.shared());
  Shared& shared = graph.shared();
  ValueNames names;
  Names inputs(states + std::max<std::size_t>(sequences, 1)), operands = inputs;  // states, then slices
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (k >= sequences + states) {
      names[given[k]] = call.inputs[k];  // the graph inside a node can use the names outside
      continue;
    }
    const bool is_state = k >= sequences;
    const std::string name = shared.fresh(is_state ? "state" : "slice");
    const std::size_t place = is_state ? k - sequences : states + k;
    names[given[k]] = name;
    inputs[place] = shared.inside_bytes(name, step.type(given[k]));
    operands[place] =
        is_state ? call.inputs[k]
                 : in_steps(call, call.inputs[k], form.input_axes[k], call.shape(k).size(), form.reverse, false);
  }
  if (sequences == 0) {  // Scan needs a sequence to count its steps
    inputs[states] = shared.inside_bytes(shared.fresh("slice"), {Dtype::int64, {}});
    operands[states] = shared.constant(Array(Dtype::int64, {form.length}));
  }
  const std::vector<ValueId>& results = step.results();
  std::vector<ValueId> wanted(results.begin() + static_cast<std::ptrdiff_t>(stacked), results.end());
  std::vector<std::size_t> outputs;  // the outputs of the call after the states
  for (std::size_t k = 0; k < stacked; ++k)
    if (call.wanted[k]) {
      outputs.push_back(k);
      wanted.push_back(results[k]);
    }
  graph.write(step, wanted, names);
  const WriteCall body{{call.attributes}, graph, call.node, {}, {}, {}, nullptr};
  Names results_bytes;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const ValueType& type = step.type(wanted[k]);
    std::string value = names.at(wanted[k]);
    if (form.condition >= 0) {
      const std::string zeros = shared.constant(Array(type.dtype, {}));
      const std::string otherwise = k < states ? names.at(given[sequences + k]) : zeros;
      value = body.where(names.at(given[static_cast<std::size_t>(form.condition)]), value, otherwise, type.dtype);
    }
    const std::string name = shared.fresh(k < states ? "next" : "output");
    graph.rename(value, name);
    results_bytes.push_back(shared.inside_bytes(name, type));
  }
  const Names found = call.add("Scan", operands, wanted.size(),
                               {{"body", GraphBytes{graph.bytes("step", inputs, results_bytes)}},
                                {"num_scan_inputs", static_cast<std::int64_t>(operands.size() - states)}});
  Names all(stacked + states);
  for (std::size_t k = 0; k < states; ++k) all[stacked + k] = found[k];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t k = outputs[i];
    all[k] = in_steps(call, found[states + i], form.output_axes[k], call.type(k).shape.size(), form.reverse, true);
  }
  return all;
}
}  // namespace

const WriterRows& control_writers() {
  static const WriterRows rows = {{"dropout", dropout}, {"scan", scan}};
  return rows;
}

}  // namespace xtape::onnx
