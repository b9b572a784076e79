#include <algorithm>

#include "kernels/table/kernels.hpp"
#include "player/run/body_kernels.hpp"

namespace xtape {

namespace {
/// Returns for each node how often the body's nodes and results read its outputs.
std::vector<int> count_reads(const Tape& body) {
  std::vector<int> reads(body.size(), 0);
  for (std::size_t i = 0; i < body.size(); ++i)
    for (const ValueId& id : body.node(i).inputs) ++reads[id.node];
  for (const ValueId& id : body.results()) ++reads[id.node];
  return reads;
}

/// Joins operand k to the loop of its reader, if there is a loop for both nodes.
void join(const Tape& body, const std::vector<int>& reads, std::size_t k, BodyLoop& loop) {
  const Node& node = body.node(loop.node);
  const std::int32_t before = node.inputs[k].node, writer = body.results()[0].node;
  const Node& first = body.node(before);
  if (first.inputs.size() != 2 || reads[before] != 1) return;
  // The first result may overwrite inputs that no later node reads (placement.cpp), so no read moves behind it.
  if (before < writer && writer < loop.node) return;
  if (!kernels().make_joint_loop({first.op->name, node.op->name, k, node.outputs[0].dtype})) return;
  loop.joined = before;
  loop.operand = k;
  loop.inputs = {first.inputs[0], first.inputs[1], node.inputs[1 - k]};
}
}  // namespace

std::vector<BodyLoop> body_loops(const Tape& body) {
  const std::vector<int> reads = count_reads(body);
  std::vector<BodyLoop> loops;
  std::vector<bool> is_joined(body.size(), false);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(body.size()); ++i) {
    const Node& node = body.node(i);
    if (node.op == &input_op()) continue;
    BodyLoop loop{i, -1, 0, {node.inputs.begin(), node.inputs.end()}};
    if (node.inputs.size() == 2)
      for (std::size_t k = 0; k < 2 && loop.joined < 0; ++k) join(body, reads, k, loop);
    if (loop.joined >= 0) is_joined[loop.joined] = true;
    loops.push_back(std::move(loop));
  }
  std::erase_if(loops, [&](const BodyLoop& loop) { return is_joined[loop.node]; });
  return loops;
}

}  // namespace xtape
