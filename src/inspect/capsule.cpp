// Cuts the smallest tape that fails out of a tape that fails.
#include <algorithm>
#include <cmath>

#include "checksum.hpp"
#include "failing.hpp"
#include "instruction_set.hpp"
#include "visit.hpp"
#include "xtape/op.hpp"

namespace xtape {

namespace {
/// Copies nodes of a program to a tape of their own. Values of other nodes become parameters.
class Cut {
 public:
  Cut(const Program& program, const NodeByNode::Values& arrays)
      : program_(program), arrays_(arrays), tape_(program.tape.blank()) {}

  void add(std::int32_t index) {
    Node node = program_.node(index);
    for (ValueId& input : node.inputs) input = value(input);
    node.serial = 0;
    const std::int32_t copy = tape_.append(std::move(node)).node;
    for (std::size_t k = 0; k < program_.node(index).outputs.size(); ++k)
      values_[{index, static_cast<std::int32_t>(k)}] = {copy, static_cast<std::int32_t>(k)};
  }

  /// The copy of a value: of a node that was added, or a parameter with its array.
  ValueId value(ValueId id) {
    const auto found = values_.find(key_of(id));
    if (found != values_.end()) return found->second;
    Node node;
    node.op = &parameter_op();
    node.storage = arrays_.at(key_of(id));
    node.outputs = {{node.storage.dtype(), node.storage.shape()}};
    node.site = program_.node(id.node).site;
    node.name = label_of(program_, id);
    while (operands_.has(node.name)) node.name += "'";
    const std::string name = node.name;
    const ValueId copy = tape_.append(std::move(node));
    operands_.add(name, tape_.var(copy));
    return values_[key_of(id)] = copy;
  }

  const Tape& tape() const { return tape_; }
  const NamedVars& operands() const { return operands_; }

 private:
  const Program& program_;
  const NodeByNode::Values& arrays_;
  Tape tape_;
  NamedVars operands_;
  std::map<std::pair<std::int32_t, std::int32_t>, ValueId> values_;
};

/// The failing node, and the nodes that compute its causes as long as they are out of range.
std::set<std::int32_t> nodes_to_keep(const FailingNode& failing, const Causes& causes) {
  constexpr std::size_t most_nodes = 20;
  constexpr double in_range = 1e4;
  std::set<std::int32_t> nodes{failing.node};
  for (std::size_t i = 0; i + 1 < causes.values.size() && nodes.size() < most_nodes; ++i) {
    const Range range = range_of(causes.arrays.at(key_of(causes.values[i].value)));
    if (i > 0 && range.all_finite() && range.magnitude() <= in_range) break;
    nodes.insert(causes.values[i + 1].user);
  }
  return nodes;
}

/// The index of the first element that is not finite; empty if all are.
std::vector<std::int64_t> first_not_finite_index(const Array& array) {
  std::int64_t flat = array.count();
  visit_floats(array, [&](const auto* elements) {
    const auto is_bad = [](auto element) { return !std::isfinite(static_cast<double>(element)); };
    flat = std::find_if(elements, elements + array.count(), is_bad) - elements;
  });
  if (flat == array.count()) return {};
  std::vector<std::int64_t> index(array.shape().size());
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = flat % array.shape()[axis];
    flat /= array.shape()[axis];
  }
  return index;
}

std::vector<Cause> described(const Program& program, const Causes& causes) {
  std::vector<Cause> list;
  for (const CausingValue& each : causes.values) {
    const Node& node = program.node(each.value.node);
    list.push_back({label_of(program, each.value), to_string(program.tape.type(each.value)), to_string(node.site),
                    range_of(causes.arrays.at(key_of(each.value)))});
  }
  return list;
}

void describe_output(Failure& failure, const Array& output) {
  failure.type = to_string(ValueType{output.dtype(), output.shape()});
  failure.range = range_of(output);
  failure.element = first_not_finite_index(output);
  failure.what = failure.range.nans > 0 ? "NaN" : failure.range.positive_infinities > 0 ? "inf" : "-inf";
}

Capsule capsule_of(const NodeByNode& plays, const FailingNode& failing) {
  const Program& program = plays.program();
  const Node& node = program.node(failing.node);
  const Causes causes = causes_of(plays, failing);
  Capsule capsule;
  capsule.version = XTAPE_VERSION;
  capsule.instruction_set = name_of(instruction_set());
  capsule.seed = plays.options().seed;
  capsule.step = plays.step();
  capsule.precision = plays.options().precision;
  Failure& failure = capsule.failure;
  failure.op = node.op->name;
  failure.node = label_of(program, {failing.node, 0});
  failure.site = to_string(node.site);
  failure.call = node.site.op != nullptr ? node.site.op->name : node.op->name;
  failure.causes = described(program, causes);
  if (node.op->is_source()) {
    capsule.tape = program.tape.blank();
    capsule.tape.parameter(failure.node, plays.source(node));
    capsule.outputs.add(failure.node, capsule.tape.var({0, 0}));
    capsule.operands = capsule.outputs;
  } else {
    Cut cut(program, causes.arrays);
    for (const std::int32_t index : nodes_to_keep(failing, causes)) cut.add(index);
    capsule.tape = cut.tape();
    capsule.operands = cut.operands();
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{failing.node, static_cast<std::int32_t>(k)};
      capsule.outputs.add(label_of(program, id), capsule.tape.var(cut.value(id)));
    }
  }
  if (!failing.error.empty()) {
    failure.error = true;
    failure.what = failing.error;
    failure.type = to_string(node.outputs[0]);
    return capsule;
  }
  std::vector<Array> outputs;  // of the failed play
  if (node.op->is_source()) {
    outputs = {plays.source(node)};
  } else {
    const SingleNode single = single_node(program.tape, node, operands_of(node, causes.arrays));
    outputs = played(single.tape, single.outputs, plays.options(), plays.step());
  }
  for (const Array& output : outputs) {
    capsule.digests.push_back(checksum_of(output.data(), output.bytes()));
    if (failure.what.empty() && not_finite(output).any()) describe_output(failure, output);
  }
  return capsule;
}

/// The time step of a node of an unrolled body: how often the body's node occurs before it.
std::int64_t time_step_of(const Program& program, std::int32_t index, const Tape& body) {
  const Node& node = program.node(index);
  const auto is_same = [&](const Node& other) { return other.op == node.op && other.site.key == node.site.key; };
  std::int64_t before = 0, in_body = 0;
  for (std::int32_t i = 0; i < index; ++i) before += is_same(program.node(i));
  for (std::size_t i = 0; i < body.size(); ++i) in_body += is_same(body.node(i));
  return in_body > 0 ? before / in_body : -1;
}

/// Within an unrolled body, labels of nodes are not those of the caller's tape: names the call that has the body.
/// Operands of the call keep their own labels.
void name_within(const std::string& call, std::string& label) {
  const std::size_t operand = label.find(" parameter '#");
  label = operand == std::string::npos ? call + ": " + label.substr(label.find(' ') + 1)
                                       : label.substr(operand + 12, label.size() - operand - 13);
}

Capsule innermost(const NodeByNode& plays, const FailingNode& failing);

/// The failure inside a call that has a body, if its nodes fail when they are recorded one by one.
std::optional<Capsule> find_inside(const NodeByNode& plays, const FailingNode& failing) {
  const Program& program = plays.program();
  const Node& node = program.node(failing.node);
  if (!node.body || !node.op->expand) return std::nullopt;
  const auto before = [&](std::int32_t index, const std::vector<Array>&, std::vector<Array>&) {
    return index + 1 < failing.node;
  };
  const NodeByNode::Values arrays = plays.play(before);
  Cut cut(program, arrays);
  Vars operands;
  for (const ValueId id : node.inputs) operands.push_back(cut.tape().var(cut.value(id)));
  const Vars outputs = node.op->expand({*node.op, node, cut.tape(), operands});
  const NodeByNode inner({cut.tape(), outputs, {}, plays.options(), plays.step()});
  const std::optional<FailingNode> inside = failing_node(inner);
  if (!inside) return std::nullopt;
  Capsule found = innermost(inner, *inside);
  if (found.failure.time_step < 0) found.failure.time_step = time_step_of(inner.program(), inside->node, *node.body);
  const std::string call = label_of(program, {failing.node, 0});
  name_within(call, found.failure.node);
  for (Cause& cause : found.failure.causes) name_within(call, cause.node);
  return found;
}

Capsule innermost(const NodeByNode& plays, const FailingNode& failing) {
  std::optional<Capsule> inside = find_inside(plays, failing);
  return inside ? std::move(*inside) : capsule_of(plays, failing);
}

std::int32_t number_of(const NodeByNode& plays, const FailingNode& failing) {
  return plays.program().origins[{failing.node, 0}].node;
}

/// Whether a rule made the node of several calls.
bool is_made_by_rule(const Program& program, std::int32_t index) {
  return program.origins[{index, 0}].op != program.node(index).op;
}
}  // namespace

std::optional<Capsule> find_failure(const RecordedPlay& play) {
  std::optional<NodeByNode> plays(play);
  std::optional<FailingNode> failing = failing_node(*plays);
  if (!failing) return std::nullopt;
  if (is_made_by_rule(plays->program(), failing->node)) {  // which of the calls fails, if they are played one by one?
    RecordedPlay without_rules = play;
    without_rules.options.passes.fuse = false;
    NodeByNode separate(without_rules);
    const std::optional<FailingNode> call = failing_node(separate);
    if (call && number_of(separate, *call) <= number_of(*plays, *failing)) {
      failing = call;
      plays.emplace(std::move(separate));
    }
  }
  Capsule capsule = innermost(*plays, *failing);
  capsule.failure.backward = !play.outputs.empty() && number_of(*plays, *failing) > play.outputs[0].id().node;
  return capsule;
}

}  // namespace xtape
