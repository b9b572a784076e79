// Lets the op that computes the last term of a sum also compute the sum.
#include <algorithm>

#include "player/program/passes.hpp"

namespace xtape {

void early_pass(Program& program) {
  const auto is_early = [&](std::int32_t index) { return program.node(index).early; };
  if (std::ranges::none_of(program.order, is_early)) return;
  // per node: its position or, if it is played early, the position of the last of its inputs
  std::vector<std::int32_t> follows = program.positions();
  for (const std::int32_t index : program.order) {
    if (!is_early(index)) continue;
    follows[index] = 0;
    for (const ValueId& input : program.node(index).inputs)
      follows[index] = std::max(follows[index], follows[input.node]);
  }
  std::ranges::stable_sort(program.order, {}, [&](std::int32_t index) { return follows[index]; });
}

namespace {
/// Returns a list with one entry for each node of the tape. If the node is a sum, and if the op of the term that is
/// computed last can also compute the sum, the entry is the node of this term. Otherwise the entry is -1. Nothing else
/// may use the term. No node after the sum may read the other term, because adding in place would then need a copy of
/// the other term.
std::vector<std::int32_t> absorbed_terms(const Program& program) {
  struct Reads {
    std::int32_t count = 0, last = -1;  // how often nodes read a value, and the position of the last of them
  };
  ValueTable<Reads> reads(program.tape, {});
  const std::vector<std::int32_t> positions = program.positions();
  for (const std::int32_t index : program.order)
    for (const ValueId& id : program.node(index).inputs) reads[id] = {reads[id].count + 1, positions[index]};
  std::vector<bool> requested(program.tape.size(), false);
  for (const ValueId& id : program.outputs) requested[id.node] = true;
  std::vector<std::int32_t> terms(program.tape.size(), -1);
  for (const std::int32_t index : program.order) {
    const Node& sum = program.node(index);
    if (!sum.op->algebra.adds) continue;
    const bool second_is_last = positions[sum.inputs[1].node] >= positions[sum.inputs[0].node];
    const ValueId last = sum.inputs[second_is_last ? 1 : 0], first = sum.inputs[second_is_last ? 0 : 1];
    const Node& term = program.node(last.node);
    const bool one_type = program.type(last) == sum.outputs[0] && program.type(first) == sum.outputs[0];
    if (one_type && first != last && reads[first].last <= positions[index] && term.op->algebra.accumulate &&
        term.outputs.size() == 1 && reads[last].count == 1 && !requested[last.node] &&
        program.regions[last.node] == program.regions[index])
      terms[index] = last.node;
  }
  return terms;
}
}  // namespace

void accumulate_pass(Program& program) {
  const std::vector<std::int32_t> terms = absorbed_terms(program);
  if (std::all_of(terms.begin(), terms.end(), [](std::int32_t term) { return term < 0; })) return;
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    if (const std::int32_t last = terms[index]; last >= 0) {
      const Node& term = program.node(last);
      const ValueId other = node.inputs[0].node == last ? node.inputs[1] : node.inputs[0];
      const auto in_site = rewriter.tape().in_site(term.site);
      const Var sum = term.op->algebra.accumulate(term, rewriter.vars(term.inputs), rewriter.var(other));
      if (!sum.empty()) {
        rewriter.replace({index, 0}, sum);
        rewriter.close(index);
        continue;
      }
    }
    rewriter.keep(index);  // keeps terms too, in case `accumulate` declines; finish() removes unused ones
  }
  rewriter.finish();
}

}  // namespace xtape
