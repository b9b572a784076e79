// Extracts from a failing tape the smallest tape that still fails.
#include <algorithm>
#include <sstream>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/bytes/encodings.hpp"
#include "base/system/instruction_set.hpp"
#include "inspect/failing.hpp"
#include "ops/recording/op_helpers.hpp"
#include "player/program/program.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
// The wording of a failure: labels, elements, time steps and causes.

/// The steps of a call with a body, recorded one by one.
struct Unrolled {
  const Tape& tape;
  const Tape& body;
  std::optional<Stepping> steps = {};  // empty if the body is not a step of a scan

  /// Returns the step to which node `index` of the tape belongs, as an index along the axis of steps. Returns -1 if the
  /// node belongs to no step.
  std::int64_t step_of(std::int32_t index) const;
};

std::int64_t Unrolled::step_of(std::int32_t index) const {
  if (!steps) return -1;
  const Node& node = tape.node(index);
  const auto is_same = [&](const Node& other) { return other.op == node.op && other.site.key == node.site.key; };
  std::int64_t before = 0, in_body = 0;
  for (std::int32_t i = 0; i < index; ++i) before += is_same(tape.node(i));
  for (std::size_t i = 0; i < body.size(); ++i) in_body += is_same(body.node(i));
  if (in_body == 0) return -1;
  return steps->reverse ? steps->length - 1 - before / in_body : before / in_body;
}

/// Returns the index of the caller's node from which a node of the program comes.
std::int32_t node_in_play(const Program& program, std::int32_t index) {
  return program.origins[{index, 0}].node;
}

/// Inserts the step to which node `index` belongs at the beginning of `time_steps`. The steps of scans inside of this
/// step come after it. Does nothing if `steps` is null, which means that the node is not inside of a body.
void add_step(std::vector<std::int64_t>& time_steps, const Unrolled* steps, const Program& program,
              std::int32_t index) {
  const std::int64_t step = steps == nullptr ? -1 : steps->step_of(node_in_play(program, index));
  if (step >= 0) time_steps.insert(time_steps.begin(), step);
}

std::string element_text(const Array& array, const std::vector<std::int64_t>& index) {
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) flat = flat * array.shape()[axis] + index[axis];
  std::ostringstream text;
  visit_elements(array, [&](const auto* elements) {
    const auto number = static_cast<double>(elements[flat]);
    if (kind_of(number) == Kind::finite)
      text << number;
    else
      text << name_of(kind_of(number));
  });
  return text.str();
}

/// Returns the range of the elements of both values.
Range together(const Range& a, const Range& b) {
  Range range = a.finite() == 0 ? b : a;
  if (a.finite() > 0 && b.finite() > 0) {
    range.min = std::min(a.min, b.min);
    range.max = std::max(a.max, b.max);
  }
  range.count = a.count + b.count;
  range.zeros = a.zeros + b.zeros;
  range.nans = a.nans + b.nans;
  range.positive_infinities = a.positive_infinities + b.positive_infinities;
  range.negative_infinities = a.negative_infinities + b.negative_infinities;
  return range;
}

/// Describes the causes. Values of the same call at several steps form one cause.
std::vector<Cause> described_causes(const Program& program, const Causes& causes, const Unrolled* steps) {
  std::vector<Cause> list;
  for (const CausingValue& each : causes.values) {
    const Node& node = program.node(each.value.node);
    const Array& array = causes.arrays.at(each.value);
    Cause cause{label_of(program, each.value), to_string(program.type(each.value)), to_string(node.site),
                range_of(array)};
    if (!each.element.empty()) {
      cause.element = each.element;
      cause.number = element_text(array, each.element);
    }
    if (steps == nullptr) {
      list.push_back(cause);
      continue;
    }
    // Labels within a body are numbered anew at each step, so calls are compared by the text after the number.
    add_step(cause.time_steps, steps, program, each.value.node);
    const auto name = [](const Cause& of) { return of.node.substr(std::min(of.node.find(' '), of.node.size())); };
    const auto same = std::ranges::find_if(list, [&](const Cause& other) {
      return !cause.time_steps.empty() && !other.time_steps.empty() && name(other) == name(cause) &&
             other.site == cause.site && other.type == cause.type;
    });
    if (same == list.end()) {
      list.push_back(cause);
      continue;
    }
    same->range = together(same->range, cause.range);
    if (same->time_steps.back() != cause.time_steps[0]) same->time_steps.push_back(cause.time_steps[0]);
  }
  return list;
}

void describe_outputs(Failure& failure, const Causes& causes) {
  const MarkedElement worst = worst_of(causes.failures).value_or(MarkedElement{});
  const Array& output = causes.outputs.at(worst.array);
  failure.what = name_of(worst.kind);
  failure.type = to_string(ValueType{output.dtype(), output.shape()});
  failure.range = range_of(output);
  failure.element = index_of(worst.element, output.shape());
}
Failure described(const Program& program, const FailingNode& failing, const Causes& causes, const Unrolled* steps) {
  const Node& node = program.node(failing.node);
  Failure failure;
  failure.op = node.op->name;
  failure.node = label_of(program, {failing.node, 0});
  failure.site = to_string(node.site);
  failure.call = node.site.op != nullptr ? node.site.op->name : node.op->name;
  failure.passed_on = !failing.chain.empty();
  failure.causes = described_causes(program, causes, steps);
  add_step(failure.time_steps, steps, program, failing.node);
  if (failing.error.empty()) {
    describe_outputs(failure, causes);
  } else {
    failure.error = true;
    failure.what = failing.error;
    failure.type = to_string(node.outputs[0]);
  }
  return failure;
}

// The smallest tape that fails.

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
  capsule.bits = plays.options().bits;
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
  const Vars outputs = expansion(node, cut.tape(), operands);
  const NodeByNode inner({cut.tape(), outputs, {}, plays.options(), plays.step()});
  const std::optional<FailingNode> inside = failing_node(inner, true);
  if (!inside) return std::nullopt;
  Unrolled inner_steps{.tape = cut.tape(), .body = *node.body};
  if (node.op->lowering.body.steps) inner_steps.steps = node.op->lowering.body.steps(call_of(program, node));
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
  // If a rule made the node from several calls, finds the failing one among them.
  if (plays->program().origins[{failing->node, 0}].op != plays->program().node(failing->node).op) {
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
