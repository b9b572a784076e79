// Computes sums inside the op that computes their last term.
#include <algorithm>

#include "passes.hpp"

namespace xtape {

namespace {
/// For each node whose only use is an addition, the node of that sum; else -1. Sums whose other operand is read after
/// the sum are left out, because adding in place would need a copy of that operand.
std::vector<std::int32_t> absorbing_sums(const Program& program) {
  const Users users(program.tape);
  std::vector<bool> requested(program.tape.size(), false);
  for (const ValueId& id : program.outputs) requested[static_cast<std::size_t>(id.node)] = true;
  const auto read_after = [&](ValueId id, std::size_t sum) {
    const auto readers = users.of(id);
    return std::any_of(readers.begin(), readers.end(),
                       [&](std::int32_t reader) { return reader > static_cast<std::int32_t>(sum); });
  };
  std::vector<std::int32_t> sums(program.tape.size(), -1);
  for (std::size_t i = 0; i < program.tape.size(); ++i) {
    const Node& sum = program.tape.node(i);
    if (!sum.op->lowering.adds) continue;
    const ValueId last = sum.inputs[0].node > sum.inputs[1].node ? sum.inputs[0] : sum.inputs[1];
    const ValueId first = last == sum.inputs[0] ? sum.inputs[1] : sum.inputs[0];
    const auto term = static_cast<std::size_t>(last.node);
    const bool one_type = program.tape.type(last) == sum.outputs[0] && program.tape.type(first) == sum.outputs[0];
    if (one_type && first != last && !read_after(first, i) && program.tape.node(term).op->accumulate &&
        program.tape.node(term).outputs.size() == 1 && users.of(last).size() == 1 && !requested[term] &&
        program.regions[term] == program.regions[i])
      sums[term] = static_cast<std::int32_t>(i);
  }
  return sums;
}
}  // namespace

Program accumulate_pass(Program program) {
  const std::vector<std::int32_t> sums = absorbing_sums(program);
  if (std::all_of(sums.begin(), sums.end(), [](std::int32_t sum) { return sum < 0; })) return program;
  std::vector<std::int32_t> terms(program.tape.size(), -1);  // sum -> the term that computes it
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] >= 0) terms[static_cast<std::size_t>(sums[i])] = static_cast<std::int32_t>(i);
  Rewriter rewriter(program);
  for (std::size_t i = 0; i < program.tape.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const Node& node = program.node(index);
    if (terms[i] >= 0) {
      const Node& term = program.node(terms[i]);
      const ValueId other = node.inputs[0].node == terms[i] ? node.inputs[1] : node.inputs[0];
      const auto in_site = rewriter.tape().in_site(term.site);
      const Var sum = term.op->accumulate(term, rewriter.now(term.inputs), rewriter.now(other));
      if (!sum.empty()) {
        rewriter.replace({index, 0}, sum);
        rewriter.close(index);
        continue;
      }
    }
    rewriter.keep(index);  // terms too, in case `accumulate` declines; else finish() removes them
  }
  return rewriter.finish();
}

}  // namespace xtape
