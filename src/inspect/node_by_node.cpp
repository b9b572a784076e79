#include "inspect/node_by_node.hpp"

#include <algorithm>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "ops/recording/op_helpers.hpp"
#include "player/program/passes.hpp"
#include "tape/calls.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
PlayerOptions with_separate_nodes(PlayerOptions options) {
  options.passes.elementwise = options.passes.accumulate = options.passes.fold = false;
  return options;
}
/// Throws if the array does not have the type of the input.
void check_fed(const Node& node, const ArrayView& array) {
  const ValueType &type = node.outputs[0], given{array.dtype(), array.shape()};
  const auto mismatch = [&] {
    return "input '" + node.name + "' is " + to_string(type) + ", fed with " + to_string(given);
  };
  if (given.dtype != type.dtype) throw DtypeError(mismatch());
  if (given.shape != type.shape) throw ShapeError(mismatch());
}
}  // namespace

std::int32_t loss_node_of(const RecordedPlay& play) {
  std::int32_t loss = -1;
  for (const Var& output : play.outputs) {
    if (count_of(output.type().shape) != 1) break;
    loss = std::max(loss, output.id().node);
  }
  return loss;
}

NodeByNode::NodeByNode(const RecordedPlay& play)
    : program_(optimised(play.tape, play.outputs, with_separate_nodes(play.options))),
      users_(program_),
      inputs_(play.inputs),
      options_(for_single_nodes(play.options)),
      step_(play.step) {
  for (std::size_t i = 0; i < program_.tape.size(); ++i)
    if (const Node& node = program_.tape.node(i); node.op == &input_op()) check_fed(node, source(node));
}

RecordedPlay recorded_play(const Player& player, const std::vector<Feed>& feeds, std::uint64_t step) {
  const std::vector<Carry>& carries = player.options().carries;
  const Vars& all = player.outputs();
  RecordedPlay play{player.tape(), Vars(all.begin(), all.end() - std::ssize(carries)), {}, player.options(), step};
  for (const Feed& feed : feeds) {
    if (feed.var.tape() != play.tape) throw HandleError("a feed's var belongs to another tape than the player");
    check_fed(feed.var.node(), feed.values);
    play.inputs.add(feed.var.node().name, Array(feed.values));
  }
  for (const Carry& carry : carries) try {
      play.inputs.add(carry.input.node().name, Array(player.carried(carry.input)));
    } catch (const Error&) {  // no output depends on it
    }
  return play;
}

RecordedPlay recorded_call(const Player& player, const ArraysOrNumbers& given, std::uint64_t step) {
  const std::vector<ArrayOrNumber>& arguments = given.list();
  const Tape tape = player.tape();
  const std::vector<ValueId> inputs = tape.inputs();
  if (arguments.size() != inputs.size())
    throw Error("the function takes " + std::to_string(inputs.size()) + " arguments, not " +
                std::to_string(arguments.size()));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    feeds.emplace_back(tape.var(inputs[i]), arguments[i].view(tape.default_dtype()));
  return recorded_play(player, feeds, step);
}

Array NodeByNode::source(const Node& node) const {
  if (node.op != &input_op()) return Array(node.storage);
  const Array* fed = inputs_.find(node.name);
  if (fed == nullptr) throw Error("input '" + node.name + "' (" + to_string(node.outputs[0]) + ") is not fed");
  return Array(*fed);
}

std::vector<Array> NodeByNode::played_alone(const Node& node, const std::vector<Array>& operands) const {
  const SingleNode single = single_node(program_.tape, node, operands);
  return played(single.tape, single.outputs, options_, step_);
}

std::int32_t NodeByNode::last_user(ValueId id) const {
  const auto users = users_.of(id);
  return users.empty() ? -1 : users.back();
}

Program with_open_bodies(const Program& program) {
  Program open = program.copy();
  const auto has_body = [&](std::int32_t index) { return open.node(index).body && open.node(index).op->expand; };
  while (std::ranges::any_of(open.order, has_body)) {
    Rewriter rewriter(open);
    for (const std::int32_t index : open.order)
      if (has_body(index))
        expand_node(rewriter, index);
      else
        rewriter.keep(index);
    rewriter.finish();
  }
  open.compact();
  return open;
}

std::string label_of(const Program& program, ValueId id) {
  const Node& node = program.node(id.node);
  const std::string name = node.name.empty() ? "" : " '" + node.name + "'";
  const bool in_body = program.regions[id.node] != 0;
  const std::string call = in_body && program.origins[id].op != node.op ? ": " + node.op->name : "";
  return program.label(id) + call + name + (id.output > 0 ? ", output " + std::to_string(id.output) : "");
}

std::vector<Feed> feeds_of(const RecordedPlay& play) {
  std::vector<Feed> feeds;
  for (const ValueId input : play.tape.inputs())
    if (const Var var = play.tape.var(input); play.inputs.has(var.node().name))
      feeds.emplace_back(var, *play.inputs.find(var.node().name));
  return feeds;
}

std::vector<Array> operands_of(const Node& node, const NodeByNode::Values& values) {
  std::vector<Array> operands;
  for (const ValueId id : node.inputs) operands.push_back(values.at(id));
  return operands;
}

NodeByNode::Values NodeByNode::play(const Visit& visit, const std::set<std::int32_t>& keep) const {
  Values values;
  std::set<std::int32_t> kept = keep;
  for (const ValueId id : program_.outputs) kept.insert(id.node);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(program_.tape.size()); ++i) {
    const Node& node = program_.node(i);
    std::vector<Array> operands, outputs;
    if (node.op->is_source()) {
      outputs = {source(node)};
    } else {
      operands = operands_of(node, values);
      outputs = played_alone(node, operands);
    }
    const bool more = visit(i, operands, outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) values[{i, static_cast<std::int32_t>(k)}] = outputs[k];
    for (const ValueId id : node.inputs)
      if (kept.count(id.node) == 0 && last_user(id) <= i) values.erase(id);
    if (!more) break;
  }
  return values;
}

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
  copy.inputs = ids;
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
  single.bits = options.bits;
  single.passes = Passes::unfused();
  return single;
}

namespace {
Dtype widened(Dtype dtype) {
  return is_floating(dtype) || is_block(dtype) ? Dtype::float64 : dtype;
}

Attributes widened(const Attributes& attributes) {
  Attributes wide;
  for (const auto& [name, value] : attributes.items()) {
    const auto* dtype = std::get_if<Dtype>(&value);
    wide.set(name, dtype != nullptr ? Attribute(widened(*dtype)) : value);
  }
  return wide;
}

Tape widened(const Tape& tape) {
  Tape wide = tape.blank();
  wide.set_default_dtype(Dtype::float64);
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    std::vector<ValueType> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(wide.type(id));
    wide.append(in_float64(node, inputs));
  }
  wide.set_results(tape.results());
  return wide;
}
}  // namespace

Array in_float64(const Array& array) {
  if (!array) return array.clone();  // clone() throws
  if (widened(array.dtype()) == array.dtype()) return Array(array);
  Array wide(Dtype::float64, array.shape());
  convert_floats(is_block(array.dtype()) ? numbers_of_blocks(array) : Array(array), wide);
  return wide;
}

Node in_float64(Node node, const std::vector<ValueType>& inputs) {
  node.serial = 0;
  if (node.storage) node.storage = in_float64(node.storage);
  if (node.body) node.body = std::make_shared<const Tape>(widened(*node.body));
  if (node.op->is_source()) {
    node.outputs = {{widened(node.outputs[0].dtype), node.outputs[0].shape}};
    return node;
  }
  node.attributes = widened(node.attributes);
  if (node.op->name == "dequantize_blocks") {  // of numbers in float64, which have no blocks
    node.op = builtin_ops().find("cast");
    node.attributes.set("dtype", Dtype::float64);
  }
  try {
    node.outputs = checked_types({{node.attributes}, *node.op, inputs, {}, node.body.get(), {}});
  } catch (Error& error) {
    error.name_op(node.op->name);
    error.name_location(to_string(node.site));
    throw;
  }
  return node;
}

WidenedTape in_float64(const Tape& tape, const Vars& vars) {
  WidenedTape wide{widened(tape), {}};
  for (const Var& var : vars) {
    if (var.tape() != tape) throw HandleError("in_float64: a var belongs to another tape");
    wide.vars.push_back(wide.tape.var(var.id()));
  }
  return wide;
}

}  // namespace xtape
