// Constant folding. Values that depend only on constants are computed at planning time.
#include <algorithm>
#include <unordered_map>

#include "player/program/passes.hpp"

namespace xtape {

namespace {
/// The largest number of elements of a folded value. Larger values (masks, positions, broadcasts) are cheaper to
/// compute at every play than to keep.
constexpr std::int64_t largest_folded = 4096;

/// Returns whether a node is folded. Its inputs must be constant. No output may have more elements than all inputs
/// together, nor more than `largest_folded`.
bool folds(const Program& program, const Node& node, const std::vector<bool>& constant) {
  if (node.op->is_source() || node.op->random || node.body) return false;
  if (node.inputs.empty() && count_of(node.outputs[0].shape) != 1) return false;
  std::int64_t count = 0;
  for (const ValueId& id : node.inputs) {
    if (!constant[id.node]) return false;
    count += count_of(program.type(id).shape);
  }
  for (const ValueType& type : node.outputs)
    if (count_of(type.shape) > std::max<std::int64_t>(1, std::min(count, largest_folded))) return false;
  return true;
}

/// Computes `values` in one play, so that thousands of constants need only one player.
std::vector<Array> computed(const Program& program, const std::vector<bool>& constant,
                            const std::vector<ValueId>& values) {
  Copier copier(program.tape, program.tape.blank());
  for (const std::int32_t index : program.order)
    if (constant[index]) copier.copy(index);
  Vars outputs;
  for (const ValueId& id : values) outputs.push_back(copier.to().var(copier.now(id)));
  PlayerOptions options;
  options.passes = Passes::reference();
  options.passes.expand = false;
  options.passes.reuse = true;
  options.threads = 1;
  Player player(copier.to(), outputs, options);
  player.play();
  std::vector<Array> results;
  for (const Var& output : outputs) results.emplace_back(player.view(output));
  return results;
}
}  // namespace

void fold_pass(Program& program) {
  std::vector<bool> constant(program.tape.size(), false), taken = constant;
  std::vector<ValueId> values;                       // the folded values that are outputs or that other nodes read
  std::unordered_map<ValueId, std::size_t> numbers;  // the indices in `values`
  const auto take = [&](ValueId id) {
    if (!constant[id.node]) return;
    taken[id.node] = true;
    if (program.node(id.node).op == &constant_op()) return;
    if (numbers.emplace(id, values.size()).second) values.push_back(id);
  };
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    constant[index] = node.op == &constant_op() || folds(program, node, constant);
    if (!constant[index])
      for (const ValueId& id : node.inputs) take(id);
  }
  for (const ValueId& id : program.outputs) take(id);
  if (values.empty()) return;
  const std::vector<Array> arrays = computed(program, constant, values);
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    if (constant[index] && !taken[index]) continue;
    const Node& node = program.node(index);
    if (!constant[index] || node.op == &constant_op()) {
      rewriter.keep(index);
      continue;
    }
    const auto in_site = rewriter.tape().in_site(node.site);
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k)
      if (const auto found = numbers.find({index, k}); found != numbers.end())
        rewriter.replace(found->first, rewriter.tape().constant(arrays[found->second]));
    rewriter.close(index);
  }
  rewriter.finish_without_pruning();
}

}  // namespace xtape
