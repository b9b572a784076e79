#include "decode/recording.hpp"

#include <algorithm>
#include <numeric>

#include "base/messages/wording.hpp"
#include "tape/graph.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape::decode {

Recording record_step(const Model& model, const std::string& function, const std::string& stepped,
                      const NamedSizes& sizes, std::int64_t capacity, Dtype caches) {
  Recording made;
  const NamedVars inputs = model.inputs(made.tape, function, sizes);
  made.tokens = inputs.at(stepped);
  made.past = made.tape.input("past of " + stepped, {made.tokens.size(0)}, Dtype::int64);
  made.tape.set_past(made.tokens, made.past, capacity, caches);
  made.result = model.record(made.tape, function, inputs)[0].value;
  for (const auto& [name, var] : inputs)
    if (name != stepped) made.fixed.add(name, var);
  return made;
}

namespace {
std::string described(const Recording& recording, std::size_t index) {
  const Node& node = recording.tape.node(index);
  const std::string site = to_string(node.site);
  return node.op->name + " -> " + to_string(node.outputs[0]) + (site.empty() ? "" : " at " + site);
}

std::vector<bool> needed_nodes(const Recording& recording) {
  std::vector<ValueId> values{recording.result.id()};
  for (const Carry& state : recording.tape.states()) values.push_back(state.output.id());
  return needed_by(recording.tape, values);
}

/// Returns for each node whether it is fixed. A fixed node depends on a fixed input, and has the same values and the
/// same shape in every step.
std::vector<bool> fixed_nodes(const Recording& recording, const Recording& longer) {
  const Tape& tape = recording.tape;
  std::vector<bool> fixed(tape.size(), false), moving(tape.size(), false);
  for (const auto& input : recording.fixed) fixed[input.value.id().node] = true;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op == &input_op()) moving[i] = !fixed[i];
    for (const ValueId& input : node.inputs) {
      moving[i] = moving[i] || moving[input.node];
      fixed[i] = fixed[i] || fixed[input.node];
    }
    moving[i] = moving[i] || node.outputs != longer.tape.node(i).outputs;  // its shape depends on the step
    fixed[i] = fixed[i] && !moving[i];
  }
  return fixed;
}

std::int64_t row_axis(const Recording& recording, const Recording& wider, ValueId value) {
  const Shape& shape = recording.tape.type(value).shape;
  const Shape& more = wider.tape.type(value).shape;
  const std::int64_t rows = recording.tokens.size(0);
  std::int64_t axis = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == more[i]) continue;
    if (axis >= 0 || shape[i] != rows || more[i] != rows + 1)
      throw DefinitionError("a value that is computed from fixed inputs must have one axis for its rows: " +
                            described(recording, static_cast<std::size_t>(value.node)));
    axis = static_cast<std::int64_t>(i);
  }
  return axis;
}

/// to_front returns the order of axes that moves `axis` to the front. from_front returns the order that moves it back.
std::vector<std::int64_t> to_front(std::size_t rank, std::int64_t axis) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
  return order;
}
std::vector<std::int64_t> from_front(std::size_t rank, std::int64_t axis) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::rotate(order.begin(), order.begin() + 1, order.begin() + axis + 1);
  return order;
}
}  // namespace

bool same_ops(const Recording& a, const Recording& b) {
  bool same = a.tape.size() == b.tape.size();
  for (std::size_t i = 0; same && i < a.tape.size(); ++i)
    same = a.tape.node(i).op == b.tape.node(i).op && a.tape.node(i).inputs == b.tape.node(i).inputs;
  return same;
}

void require_same_ops(const Recording& a, const Recording& b) {
  if (!same_ops(a, b)) throw DefinitionError("the function must record the same ops for any number of rows and tokens");
}

StepSplit split(const Recording& recording, const Recording& wider, const Recording& longer) {
  require_same_ops(recording, wider);
  require_same_ops(recording, longer);
  StepSplit made;
  made.fixed = fixed_nodes(recording, longer);
  made.needed = needed_nodes(recording);
  std::vector<ValueId> values;
  const auto cross = [&](ValueId value) {
    if (made.fixed[value.node] && !contains(values, value)) values.push_back(value);
  };
  for (std::size_t i = 0; i < recording.tape.size(); ++i)
    if (made.needed[i] && !made.fixed[i])
      for (const ValueId& input : recording.tape.node(i).inputs) cross(input);
  cross(recording.result.id());
  for (const ValueId& value : values) made.boundary.push_back({value, row_axis(recording, wider, value)});
  return made;
}

NamedVars boundary_vars(Recording& recording, const StepSplit& split) {
  NamedVars vars;
  for (const BoundaryValue& boundary : split.boundary) {
    const Var value = recording.tape.var(boundary.value);
    vars.add("fixed " + std::to_string(vars.size()),
             boundary.row_axis > 0 ? transpose(value, to_front(value.rank(), boundary.row_axis)) : value);
  }
  return vars;
}

Recording rest_of(const Recording& recording, const StepSplit& split, const std::vector<Array>& memory) {
  Recording rest;
  rest.tape = recording.tape.blank();
  Copier copier(recording.tape, rest.tape);
  for (std::size_t i = 0; i < split.boundary.size(); ++i) {
    const BoundaryValue& boundary = split.boundary[i];
    const Var rows_first = rest.tape.parameter("fixed " + std::to_string(i), memory[i]);
    const Var value =
        boundary.row_axis > 0 ? transpose(rows_first, from_front(rows_first.rank(), boundary.row_axis)) : rows_first;
    if (value.type() != recording.tape.type(boundary.value))
      throw DefinitionError("the function computes " + to_string(value.type()) + " from its fixed inputs, but needs " +
                            to_string(recording.tape.type(boundary.value)));
    copier.replace(boundary.value, value.id());
  }
  for (std::size_t i = 0; i < recording.tape.size(); ++i)
    if (split.needed[i] && !split.fixed[i]) copier.copy(static_cast<std::int32_t>(i));
  const auto var = [&](const Var& of) {
    const ValueId id = copier.now(of.id());
    return id.node < 0 ? Var() : rest.tape.var(id);
  };
  rest.tokens = var(recording.tokens);
  rest.past = var(recording.past);
  rest.result = var(recording.result);
  for (const Carry& state : recording.tape.states()) rest.tape.add_state(var(state.input), var(state.output));
  return rest;
}

}  // namespace xtape::decode
