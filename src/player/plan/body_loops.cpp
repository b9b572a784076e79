#include "plan/body_loops.hpp"

#include <algorithm>

#include "kernels.hpp"

namespace xtape {

namespace {
/// Returns the number of times that the body's nodes and results read the first output of each node.
std::vector<int> count_reads(const Tape& body) {
  std::vector<int> reads(body.size(), 0);
  for (std::size_t i = 0; i < body.size(); ++i)
    for (const ValueId& id : body.node(i).inputs) ++reads[static_cast<std::size_t>(id.node)];
  for (const ValueId& id : body.results()) ++reads[static_cast<std::size_t>(id.node)];
  return reads;
}
}  // namespace

std::vector<BodyLoop> loops_of(const Tape& body) {
  const std::vector<int> reads = count_reads(body);
  const std::int32_t writer = body.results()[0].node;
  std::vector<BodyLoop> loops;
  std::vector<bool> is_joined(body.size(), false);
  for (std::size_t i = 0; i < body.size(); ++i) {
    const Node& node = body.node(i);
    if (node.op == &input_op()) continue;
    BodyLoop loop{static_cast<std::int32_t>(i), -1, 0, {node.inputs.begin(), node.inputs.end()}};
    for (std::size_t k = 0; k < node.inputs.size() && loop.joined < 0; ++k) {
      const std::int32_t before = node.inputs[k].node;
      const Node& first = body.node(before);
      if (node.inputs.size() != 2 || first.inputs.size() != 2 || reads[static_cast<std::size_t>(before)] != 1) continue;
      // The first result may overwrite inputs that no later node reads (placement.cpp), so no read moves behind it.
      if (before < writer && writer < loop.node) continue;
      if (!kernels().make_joint_loop({first.op->name, node.op->name, k, node.outputs[0].dtype})) continue;
      loop.joined = before;
      loop.operand = k;
      loop.inputs = {first.inputs[0], first.inputs[1], node.inputs[1 - k]};
      is_joined[static_cast<std::size_t>(before)] = true;
    }
    loops.push_back(std::move(loop));
  }
  std::erase_if(loops, [&](const BodyLoop& loop) { return is_joined[static_cast<std::size_t>(loop.node)]; });
  return loops;
}

}  // namespace xtape
