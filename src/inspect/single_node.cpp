#include "inspect/single_node.hpp"

#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// Unlike Tape::parameter, adds one node for each operand, even if several operands share memory with different shapes.
ValueId add_parameter(Tape& tape, const std::string& name, const Array& array) {
  Node node;
  node.op = &parameter_op();
  node.name = name;
  node.outputs = {{array.dtype(), array.shape()}};
  node.storage = array;
  return tape.append(std::move(node));
}
}  // namespace

SingleNode single_node(const Tape& like, const Node& node, const std::vector<Array>& operands) {
  SingleNode single{like.blank(), {}};
  std::vector<ValueId> ids;
  for (const Array& operand : operands) ids.push_back(add_parameter(single.tape, std::to_string(ids.size()), operand));
  if (node.op->is_source()) return {single.tape, {single.tape.var(ids.at(0))}};
  Node copy = node;
  copy.inputs = std::move(ids);
  copy.fused = false;  // the node is played unchanged, not expanded and fused again
  const std::int32_t index = single.tape.append(std::move(copy)).node;
  for (std::size_t k = 0; k < node.outputs.size(); ++k)
    single.outputs.push_back(single.tape.var({index, static_cast<std::int32_t>(k)}));
  return single;
}

std::vector<Array> played(const Tape& tape, const Vars& outputs, const PlayerOptions& options, std::uint64_t step) {
  Player player(tape, outputs, options);
  std::vector<Array> results;
  for (const Var& output : outputs) results.emplace_back(output.dtype(), output.shape());
  const std::vector<bool> moved = player.move_outputs(outputs, results);
  player.play({}, step);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!moved[i]) results[i].assign(player.view(outputs[i]));
  return results;
}

PlayerOptions for_single_nodes(const PlayerOptions& options) {
  PlayerOptions single;
  single.threads = options.threads;
  single.seed = options.seed;
  single.precision = options.precision;
  single.passes = Passes::unfused();
  return single;
}

}  // namespace xtape
