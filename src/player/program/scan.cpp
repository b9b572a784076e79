// Drops outputs of scans that nothing reads, and inputs that the body can do without. Finds which zeros in the outputs
// are read.
#include <algorithm>
#include <unordered_map>

#include "player/program/passes.hpp"

namespace xtape {

namespace {
constexpr std::size_t small_constant = 1024;  // bytes; a scan can prepare larger operands before its steps

/// Records the inputs of a scan on its new body, and adds the values of those that stay inputs to `kept`. An input that
/// is the same at each step becomes a constant of the body if it is a small constant. Several such inputs of one value
/// become one. Equal calls in the body then have equal inputs.
Vars inputs_of(const Rewriter& rewriter, const Node& node, const Stepping& form, Tape body, ValueIds& kept) {
  const std::size_t first_alike = form.sequences() + static_cast<std::size_t>(form.states);
  const std::vector<ValueId> old = node.body->inputs();
  std::unordered_map<ValueId, Var> alike;  // what stands for the values that are the same at each step
  Vars inputs;
  for (std::size_t k = 0; k < old.size(); ++k) {
    const ValueId value = rewriter.now(node.inputs[k]);
    const bool is_alike = k >= first_alike;
    if (const auto known = alike.find(value); is_alike && known != alike.end()) {
      inputs.push_back(known->second);
      continue;
    }
    const Node& source = rewriter.program().node(value.node);
    if (is_alike && source.op == &constant_op() && source.storage.bytes() <= small_constant) {
      inputs.push_back(body.constant(source.storage));
    } else {
      const ValueType& type = node.body->type(old[k]);
      inputs.push_back(body.input(node.body->node(old[k].node).name, type.shape, type.dtype));
      kept.push_back(value);
    }
    if (is_alike) alike.emplace(value, inputs.back());
  }
  return inputs;
}

/// Returns the same call with only the inputs that inputs_of() keeps, and with only those stacked outputs for which
/// `used` is true.
Node narrowed(const Rewriter& rewriter, const Node& node, Stepping form, const std::vector<bool>& used) {
  auto kept = std::make_shared<Tape>(node.body->blank());
  Node fresh = node;
  fresh.inputs = {};
  const Vars results = inline_body(*kept, *node.body, inputs_of(rewriter, node, form, *kept, fresh.inputs));
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
  fresh.attributes = node.op->lowering.body.attributes(form);
  fresh.body = kept;
  return fresh;
}
}  // namespace

void scan_pass(Program& program) {
  const auto steps = [&](std::int32_t index) {
    const Lowering& lowering = program.node(index).op->lowering;
    return lowering.body.steps && lowering.body.attributes;
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
    const Stepping form = node.op->lowering.body.steps(call_of(program, node));
    const std::size_t stacked = form.stacked();
    std::vector<bool> used(node.outputs.size(), true);
    for (std::size_t k = 0; k < stacked; ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      const bool requested = std::find(program.outputs.begin(), program.outputs.end(), id) != program.outputs.end();
      used[k] = requested || !users.of(id).empty();
    }
    const std::int32_t placed = rewriter.tape().append(narrowed(rewriter, node, form, used)).node;
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
  const Stepping form = node.op->lowering.body.steps(call_of(program, node));
  std::vector<bool> needed(form.stacked(), true);
  if (form.condition < 0) return needed;
  const ValueId flags = flags_of(program, index, form);
  const auto skips_the_same = [&](std::int32_t user, ValueId value) {
    const Node& reader = program.node(user);
    if (!reader.op->lowering.body.steps) return false;
    const Stepping steps = reader.op->lowering.body.steps(call_of(program, reader));
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
