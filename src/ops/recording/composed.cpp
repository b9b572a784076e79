#include "ops/recording/composed.hpp"

#include <algorithm>
#include <sstream>

#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns whether the op itself computes with floats. If not, its expansion only moves elements or plays a body as
/// recorded.
bool computes(const ExpandCall& call) {
  const Op& op = call.op;
  if (call.node.body || runs_on_any_dtype(op)) return false;
  return op.lowering.runs() ||
         std::ranges::any_of(op.inputs, [](const InputSpec& input) { return input.accept == Accept::floating; });
}
}  // namespace

bool runs_on_any_dtype(const Op& op) {
  const Lowering& lowering = op.lowering;
  return lowering.any_dtype || lowering.casts || lowering.view || lowering.parts || lowering.steps;
}

Vars expansion(const ExpandCall& call) {
  ExpandCall wide = call;
  if (computes(call))
    for (Var& input : wide.inputs)
      if (is_half(input.dtype())) input = cast(input, Dtype::float32);
  Vars results = call.op.expand(wide);
  for (std::size_t k = 0; k < results.size(); ++k) results[k] = cast(results[k], call.node.outputs[k].dtype);
  return results;
}

std::vector<InputSpec> inputs_of(const char* text) {
  std::istringstream words(text);
  std::vector<InputSpec> inputs;
  for (std::string word; words >> word;) {
    InputSpec input{"", Accept::floating};
    switch (word.front()) {
      case '#':
        input.accept = Accept::integer;
        break;
      case '!':
        input.accept = Accept::mask;
        break;
      case '=':
        input.accept = Accept::value;
        break;
      default:
        break;
    }
    if (input.accept != Accept::floating) word.erase(0, 1);
    if (word.back() == '?') {
      input.arity = Arity::optional;
      word.pop_back();
    }
    input.name = word;
    inputs.push_back(input);
  }
  return inputs;
}

std::vector<Op> composed(const ComposedRow* rows, std::size_t count, ShapeRule shape,
                         const std::vector<AttributeSpec>& shared) {
  std::vector<Op> ops;
  for (const ComposedRow* row = rows; row != rows + count; ++row) {
    Op op;
    op.name = row->name;
    op.doc = row->doc;
    op.inputs = inputs_of(row->inputs);
    for (const AttributeRow& each : row->attributes) {
      if (each.name == nullptr) continue;
      const Attribute initial = each.type == AttributeType::boolean ? Attribute(each.initial != 0)
                                : each.type == AttributeType::integer
                                    ? Attribute(static_cast<std::int64_t>(each.initial))
                                    : Attribute(each.initial);
      op.attributes.push_back({each.name, each.type, each.doc, initial});
    }
    op.attributes.insert(op.attributes.end(), shared.begin(), shared.end());
    op.shape = shape;
    op.expand = row->expand;
    op.differentiable = row->differentiable;
    ops.push_back(op);
  }
  return ops;
}

void add_all(OpTable& table, const std::vector<std::vector<Op>>& families) {
  for (const std::vector<Op>& family : families)
    for (const Op& op : family) table.add(op);
}

Var call_op(const char* name, const std::vector<Operand>& operands, const Attributes& attributes) {
  return apply(builtin_ops().at(name), operands, attributes)[0];
}
std::pair<Var, Var> call_pair(const char* name, const std::vector<Operand>& operands, const Attributes& attributes) {
  const Vars both = apply(builtin_ops().at(name), operands, attributes);
  return {both[0], both[1]};
}

}  // namespace xtape
