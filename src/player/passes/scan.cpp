// Removes the outputs of scans that nothing reads.
#include <algorithm>

#include "passes/passes.hpp"
#include "plan/placement.hpp"

namespace xtape {

namespace {
/// The same call with only those stacked outputs for which `used` is true.
Node narrowed(const Node& node, Stepping form, const std::vector<bool>& used) {
  const Tape& body = *node.body;
  auto kept = std::make_shared<Tape>(body.blank());
  Vars inputs;
  for (const ValueId& id : body.inputs()) {
    const ValueType& type = body.type(id);
    inputs.push_back(kept->input(body.node(id.node).name, type.shape, type.dtype));
  }
  const Vars results = inline_body(*kept, body, inputs);
  Node fresh = node;
  std::vector<ValueType> types;
  const std::vector<std::int64_t> axes = std::move(form.output_axes);
  form.output_axes.clear();
  std::vector<ValueId> ids;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const bool stacked = k < axes.size();
    if (stacked && !used[k]) continue;
    if (stacked) form.output_axes.push_back(axes[k]);
    ids.push_back(results[k].id());
    types.push_back(node.outputs[k]);
  }
  kept->set_results(ids);
  fresh.outputs = std::move(types);
  fresh.attributes = node.op->lowering.attributes(form);
  fresh.body = kept;
  return fresh;
}
}  // namespace

void scan_pass(Program& program) {
  const auto steps = [&](std::int32_t index) {
    const Lowering& lowering = program.node(index).op->lowering;
    return lowering.steps && lowering.attributes;
  };
  if (std::none_of(program.order.begin(), program.order.end(), steps)) return;
  const Users users(program);
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    if (!steps(index)) {
      rewriter.keep(index);
      continue;
    }
    const Stepping form = node.op->lowering.steps(call_of(program, node));
    const std::size_t stacked = form.stacked();
    std::vector<bool> used(node.outputs.size(), true);
    for (std::size_t k = 0; k < stacked; ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      const bool requested = std::find(program.outputs.begin(), program.outputs.end(), id) != program.outputs.end();
      used[k] = requested || !users.of(id).empty();
    }
    Node fresh = narrowed(node, form, used);
    for (ValueId& input : fresh.inputs) input = rewriter.now(input);
    const std::int32_t placed = rewriter.tape().append(std::move(fresh)).node;
    std::int32_t next = 0;
    for (std::size_t k = 0; k < used.size(); ++k)
      if (used[k]) rewriter.replace({index, static_cast<std::int32_t>(k)}, rewriter.tape().var({placed, next++}));
    rewriter.close(index);
  }
  rewriter.finish();
}

}  // namespace xtape
