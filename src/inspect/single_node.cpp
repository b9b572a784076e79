#include "inspect/node_by_node.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
constexpr std::int64_t sums = sizeof(RoundingSquares) / sizeof(double);
}  // namespace

const Op& rounding_error_op() {
  static const Op entry{.name = "rounding_error",
                        .doc = "The error of a value against float64, and sums of squares.",
                        .inputs = {{"value", Accept::any}, {"local", Accept::any}, {"exact", Accept::any}},
                        .outputs = {"error", "squares"},
                        .shape = [](const OpCall& call) -> std::vector<ValueType> {
                          const std::int64_t pieces = (count_of(call.shape(0)) + rounding_piece - 1) / rounding_piece;
                          return {{Dtype::float32, call.shape(0)}, {Dtype::float64, {pieces, sums}}};
                        },
                        .differentiable = false,
                        .lowering = {.kernel = kernel_by_name}};
  return entry;
}

RoundingSquares sum_of(const ArrayView& squares) {
  RoundingSquares sum;
  const double* numbers = squares.as<double>();
  for (std::int64_t p = 0; p < squares.shape()[0]; ++p, numbers += sums) {
    sum.values += numbers[0];
    sum.made += numbers[1];
    sum.inherited += numbers[2];
    sum.total += numbers[3];
    sum.overflows += numbers[4];
  }
  return sum;
}

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
