// Finds which outputs of scans, and which zeros in these outputs, are read.
#include <algorithm>

#include "passes/passes.hpp"
#include "plan/placement.hpp"

namespace xtape {

namespace {
/// Returns the same call with only those stacked outputs for which `used` is true.
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

namespace {
/// Returns the sequence of flags that says which steps of a conditional scan take place. Its node is -1 if the player
/// cannot know the flags.
ValueId flags_of(const Program& program, std::int32_t index, const Stepping& form) {
  const Node& node = program.node(index);
  const auto place = static_cast<std::size_t>(form.condition);
  if (place < form.sequences()) return node.inputs[place];
  const ValueId state = node.body->inputs()[place];
  for (std::size_t k = 0; k < form.stacked(); ++k)
    if (node.body->results()[k] == state) return {index, static_cast<std::int32_t>(k)};
  return {};
}
}  // namespace

std::vector<bool> needed_zeros(const Program& program, const Users& users, std::int32_t index) {
  const Node& node = program.node(index);
  const Stepping form = node.op->lowering.steps(call_of(program, node));
  std::vector<bool> needed(form.stacked(), true);
  if (form.condition < 0) return needed;
  const ValueId flags = flags_of(program, index, form);
  const auto skips_the_same = [&](std::int32_t user, ValueId value) {
    const Node& reader = program.node(user);
    if (!reader.op->lowering.steps) return false;
    const Stepping steps = reader.op->lowering.steps(call_of(program, reader));
    if (steps.condition < 0 || flags_of(program, user, steps) != flags) return false;
    for (std::size_t u = 0; u < reader.inputs.size(); ++u)
      if (reader.inputs[u] == value &&
          (u >= steps.sequences() || steps.input_axes[u] != form.output_axes[static_cast<std::size_t>(value.output)]))
        return false;
    return true;
  };
  for (std::size_t k = 0; k < needed.size(); ++k) {
    const ValueId value{index, static_cast<std::int32_t>(k)};
    if (flags.node < 0 || value == flags) continue;
    const auto readers = users.of(value);
    const auto skips = [&](std::int32_t user) { return skips_the_same(user, value); };
    needed[k] = std::find(program.outputs.begin(), program.outputs.end(), value) != program.outputs.end() ||
                !std::all_of(readers.begin(), readers.end(), skips);
  }
  return needed;
}

}  // namespace xtape
