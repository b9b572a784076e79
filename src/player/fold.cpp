// What depends on constants alone, computed while planning.
#include "passes.hpp"

namespace xtape {

namespace {
/// Values larger than this are cheaper to make again at every play than to keep (masks, positions, broadcasts).
constexpr std::int64_t largest_folded = 4096;

bool folds(const Program& program, const Node& node, const std::vector<bool>& constant) {
  if (node.op->kind == Kind::source || node.op->random || node.body) return false;
  if (node.inputs.empty() && count_of(node.outputs[0].shape) != 1) return false;
  std::int64_t count = 0;
  for (const ValueId& id : node.inputs) {
    if (!constant[static_cast<std::size_t>(id.node)]) return false;
    count += count_of(program.tape.type(id).shape);
  }
  for (const ValueType& type : node.outputs)
    if (count_of(type.shape) > std::max<std::int64_t>(1, std::min(count, largest_folded))) return false;
  return true;
}

/// The outputs of `node` on constant inputs, as constants on the rewriter's tape.
Vars computed(const Node& node, const std::vector<Array>& inputs, Tape& target) {
  Tape tape(target.mode());
  Vars constants;
  for (const Array& input : inputs) constants.push_back(tape.constant(input));
  const Vars outputs = record_call(tape, *node.op, constants, node.attributes);  // one call, as it stands
  PlayerOptions options;
  options.passes = Passes::reference();
  options.passes.expand = false;
  options.threads = 1;
  Player player(tape, outputs, options);
  player.play();
  Vars folded;
  for (const Var& output : outputs) folded.push_back(target.constant(player.view(output)));
  return folded;
}
}  // namespace

Program fold_pass(const Program& program) {
  Rewriter rewriter(program);
  std::vector<bool> constant(program.tape.size(), false);
  for (std::size_t i = 0; i < program.tape.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const Node& node = program.node(index);
    constant[i] = node.op == &constant_op() || folds(program, node, constant);
    if (!constant[i] || node.op == &constant_op()) {
      rewriter.keep(index);
      continue;
    }
    std::vector<Array> inputs;
    for (const ValueId& id : node.inputs) inputs.push_back(rewriter.now(id).node().storage);
    const auto in_site = rewriter.tape().in_site(node.site);
    const Vars folded = computed(node, inputs, rewriter.tape());
    for (std::size_t k = 0; k < folded.size(); ++k) rewriter.replace({index, static_cast<std::int32_t>(k)}, folded[k]);
    rewriter.close_region(program.regions[i]);
  }
  return rewriter.finish();
}

}  // namespace xtape
