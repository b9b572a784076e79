// Extracts from a failing tape the smallest tape that still fails.
#include "base/files/encodings.hpp"
#include "base/threads/instruction_set.hpp"
#include "inspect/failing.hpp"
#include "ops/recording/op_helpers.hpp"
#include "player/program/program.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// Copies nodes of a program to a separate tape. Values of other nodes become parameters. Constants stay constants.
class CutOut {
 public:
  CutOut(const Program& program, const NodeByNode::Values& arrays)
      : program_(program), arrays_(arrays), copier_(program.tape, program.tape.blank()) {}

  void add(std::int32_t index) {
    for (const ValueId& input : program_.node(index).inputs) value(input);
    copier_.copy(index);
  }

  /// Returns the copy of a value: an output of an added node, or a parameter with the value's array.
  ValueId value(ValueId id) {
    if (copier_.known(id)) return copier_.now(id);
    if (program_.node(id.node).op == &constant_op()) {
      add(id.node);
      return copier_.now(id);
    }
    Node node;
    node.op = &parameter_op();
    node.storage = arrays_.at(id);
    node.outputs = {{node.storage.dtype(), node.storage.shape()}};
    node.site = program_.node(id.node).site;
    node.name = label_of(program_, id);
    while (operands_.has(node.name)) node.name += "'";
    const std::string name = node.name;
    const ValueId copy = copier_.to().append(std::move(node));
    operands_.add(name, copier_.to().var(copy));
    copier_.replace(id, copy);
    return copy;
  }

  const Tape& tape() { return copier_.to(); }
  const NamedVars& operands() const { return operands_; }

 private:
  const Program& program_;
  const NodeByNode::Values& arrays_;
  Copier copier_;
  NamedVars operands_;
};

/// Returns the failing node and the nodes that compute its causes. Stops at the first cause whose elements are finite
/// and at most `in_range` in magnitude. If the failure has a chain, returns the failing node and the nodes of the chain
/// that are not sources.
std::set<std::int32_t> nodes_of_capsule(const Program& program, const FailingNode& failing, const Causes& causes) {
  constexpr std::size_t most_nodes = 20;
  constexpr double in_range = 1e4;
  std::set<std::int32_t> nodes{failing.node};
  for (const std::int32_t index : failing.chain)
    if (!program.node(index).op->is_source()) nodes.insert(index);
  if (!failing.chain.empty()) return nodes;
  for (std::size_t i = 0; i + 1 < causes.values.size() && nodes.size() < most_nodes; ++i) {
    const Range range = range_of(causes.arrays.at(causes.values[i].value));
    if (i > 0 && range.all_finite() && range.magnitude() <= in_range) break;
    nodes.insert(causes.values[i + 1].user);
  }
  return nodes;
}

Capsule capsule_of(const NodeByNode& plays, const FailingNode& failing, const Unrolled* steps) {
  const Program& program = plays.program();
  const Node& node = program.node(failing.node);
  const Causes causes = causes_of(plays, failing);
  Capsule capsule;
  capsule.version = XTAPE_VERSION;
  capsule.instruction_set = name_of(instruction_set());
  capsule.seed = plays.options().seed;
  capsule.step = plays.step();
  capsule.precision = plays.options().precision;
  capsule.failure = described(program, failing, causes, steps);
  if (node.op->is_source()) {
    capsule.tape = program.tape.blank();
    capsule.tape.parameter(capsule.failure.node, plays.source(node));
    capsule.outputs.add(capsule.failure.node, capsule.tape.var({0, 0}));
    capsule.operands = capsule.outputs;
  } else {
    CutOut cut(program, causes.arrays);
    for (const std::int32_t index : nodes_of_capsule(program, failing, causes)) cut.add(index);
    capsule.tape = cut.tape();
    capsule.operands = cut.operands();
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{failing.node, static_cast<std::int32_t>(k)};
      capsule.outputs.add(label_of(program, id), capsule.tape.var(cut.value(id)));
    }
  }
  for (const Array& output : causes.outputs) capsule.digests.push_back(checksum_of(output.data(), output.bytes()));
  return capsule;
}

/// Labels inside an unrolled body do not refer to the caller's tape. This function replaces their number by the name of
/// the call that has the body. Operands of the call keep their own labels.
void name_within(const std::string& call, std::string& label) {
  const std::size_t operand = label.find(" parameter '#");
  label = operand == std::string::npos ? call + ": " + label.substr(label.find(' ') + 1)
                                       : label.substr(operand + 12, label.size() - operand - 13);
}

Capsule innermost(const NodeByNode& plays, const FailingNode& failing, const Unrolled* steps);

/// Returns the failure inside a call with a body, if one of the inner nodes fails when they are recorded one by one.
std::optional<Capsule> find_inside(const NodeByNode& plays, const FailingNode& failing, const Unrolled* steps) {
  const Program& program = plays.program();
  const Node& node = program.node(failing.node);
  if (!node.body || !node.op->expand) return std::nullopt;
  const auto before = [&](std::int32_t index, const std::vector<Array>&, std::vector<Array>&) {
    return index + 1 < failing.node;
  };
  const NodeByNode::Values arrays = plays.play(before);
  CutOut cut(program, arrays);
  Vars operands;
  for (const ValueId id : node.inputs) operands.push_back(cut.tape().var(cut.value(id)));
  const Vars outputs = expansion({*node.op, node, cut.tape(), operands});
  const NodeByNode inner({cut.tape(), outputs, {}, plays.options(), plays.step()});
  const std::optional<FailingNode> inside = failing_node(inner, true);
  if (!inside) return std::nullopt;
  Unrolled inner_steps{cut.tape(), *node.body, {}};
  if (node.op->lowering.steps) inner_steps.steps = node.op->lowering.steps(call_of(program, node));
  Capsule found = innermost(inner, *inside, &inner_steps);
  add_step(found.failure.time_steps, steps, program, failing.node);
  const std::string call = label_of(program, {failing.node, 0});
  name_within(call, found.failure.node);
  for (Cause& cause : found.failure.causes) name_within(call, cause.node);
  return found;
}

Capsule innermost(const NodeByNode& plays, const FailingNode& failing, const Unrolled* steps) {
  std::optional<Capsule> inside = find_inside(plays, failing, steps);
  return inside ? std::move(*inside) : capsule_of(plays, failing, steps);
}

/// Returns whether a rule made the node from several calls.
bool is_made_by_rule(const Program& program, std::int32_t index) {
  return program.origins[{index, 0}].op != program.node(index).op;
}

/// Returns whether the node of the caller's tape belongs to the gradient of the first output. Such a node comes after
/// the output and has the site of an earlier call.
bool is_backward(const RecordedPlay& play, std::int32_t number) {
  const std::int32_t first = play.outputs[0].id().node;
  const std::uint64_t key = play.tape.node(number).site.key;
  for (std::int32_t i = 0; i <= first && number > first; ++i)
    if (play.tape.node(i).site.key == key) return true;
  return false;
}
}  // namespace

std::optional<Capsule> find_failure(const RecordedPlay& play) {
  std::optional<NodeByNode> plays(play);
  std::optional<FailingNode> failing = failing_node(*plays);
  if (!failing) return std::nullopt;
  // finds the failing call among the calls that the rule replaced
  if (is_made_by_rule(plays->program(), failing->node)) {
    RecordedPlay without_rules = play;
    without_rules.options.passes.fuse = false;
    NodeByNode separate(without_rules);
    const std::optional<FailingNode> call = failing_node(separate);
    if (call && node_in_play(separate.program(), call->node) <= node_in_play(plays->program(), failing->node)) {
      failing = call;
      plays.emplace(std::move(separate));
    }
  }
  Capsule capsule = innermost(*plays, *failing, nullptr);
  capsule.failure.backward = is_backward(play, node_in_play(plays->program(), failing->node));
  return capsule;
}

}  // namespace xtape
