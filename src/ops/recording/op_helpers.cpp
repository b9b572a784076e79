#include "ops/recording/op_helpers.hpp"

#include <algorithm>
#include <bit>
#include <sstream>

namespace xtape {

namespace {
/// Returns whether the op itself computes with floats. If not, its expansion only moves elements or plays a body as
/// recorded.
bool computes(const Node& node) {
  const Op& op = *node.op;
  if (node.body || runs_on_any_dtype(op)) return false;
  return op.lowering.runs() ||
         std::ranges::any_of(op.inputs, [](const InputSpec& input) { return input.accept == Accept::floating; });
}
}  // namespace

bool runs_on_any_dtype(const Op& op) {
  const Lowering& lowering = op.lowering;
  return lowering.dtypes.any || lowering.dtypes.casts || lowering.view || lowering.layouts.parts || lowering.body.steps;
}

bool reads_blocks(const OpCall& call) {
  const Lowering& lowering = call.op.lowering;
  if (call.body != nullptr) return !lowering.body.steps;
  if (!lowering.view) return lowering.dtypes.blocks && lowering.dtypes.blocks(call);
  const auto layout = lowering.view.output(call, Layout::dense(call.shape(0)));
  return layout && layout->offset == 0 && count_of(layout->shape) % block_of(call.dtype(0)) == 0;
}

void require_readable_blocks(const OpCall& call) {
  const auto& states = call.op.lowering.overwrites;  // kernels that read blocks may also write over them
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (is_block(call.dtype(i)) && call.body == nullptr &&
        ((i > 0 && !std::ranges::count(states, i)) || !reads_blocks(call)))
      throw DtypeError("cannot read " + to_string(call.inputs[i]) + " in blocks: dequantize it first");
}

Vars expansion(const Node& node, const Tape& tape, Vars inputs) {
  if (computes(node))
    for (Var& input : inputs)
      if (is_half(input.dtype())) input = cast(input, Dtype::float32);
  Vars results = node.op->expand({{node.attributes}, *node.op, node, tape, inputs});
  for (std::size_t k = 0; k < results.size(); ++k) results[k] = cast(results[k], node.outputs[k].dtype);
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

namespace {
using Integers = std::vector<std::int64_t>;

/// Returns the axis of an array of this rank as a negative axis.
std::int64_t from_the_back(std::int64_t axis, std::size_t rank) {
  return static_cast<std::int64_t>(normal_axis(axis, rank)) - static_cast<std::int64_t>(rank);
}

Vars recorded(const BatchCall& call, const Vars& inputs, const Attributes& attributes) {
  return record_call(call.tape, call.op, inputs, attributes);
}
}  // namespace

Var BatchCall::whole(std::size_t input) const {
  const Var& x = inputs[input];
  if (mapped[input]) return x;
  Shape shape = x.shape();
  shape.insert(0, size);
  return broadcast_to(x, shape);
}

Vars BatchCall::all_whole() const {
  Vars all;
  for (std::size_t i = 0; i < inputs.size(); ++i) all.push_back(whole(i));
  return all;
}

Vars batch_elementwise(const BatchCall& call) {
  std::size_t rank = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) rank = std::max(rank, call.rank(i));
  Vars aligned = call.inputs;
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    if (!call.mapped[i] || call.rank(i) == rank) continue;
    Shape shape = aligned[i].shape();
    for (std::size_t k = call.rank(i); k < rank; ++k) shape.insert(1, 1);
    aligned[i] = reshape(aligned[i], shape);
  }
  return recorded(call, aligned, call.attributes);
}

Vars batch_leading(const BatchCall& call) {
  return recorded(call, call.all_whole(), call.attributes);
}

Vars batch_rows_of_input(const BatchCall& call) {
  const bool others = std::any_of(call.mapped.begin() + 1, call.mapped.end(), [](bool mapped) { return mapped; });
  return others ? Vars{} : recorded(call, call.inputs, call.attributes);
}

BatchRule batch_along(const std::string& name, bool of_output) {
  return [=](const BatchCall& call) {
    Attributes attributes = call.attributes;
    const std::size_t rank = of_output ? call.node.outputs[0].shape.size() : call.rank();
    attributes.set(name, from_the_back(attributes.get<std::int64_t>(name), rank));
    return recorded(call, call.all_whole(), attributes);
  };
}

BatchRule batch_axes(const std::string& name) {
  return [=](const BatchCall& call) {
    Attributes attributes = call.attributes;
    Integers axes = attributes.get<Integers>(name);
    Vars inputs = call.all_whole();
    const auto rank = static_cast<std::int64_t>(call.rank());
    for (std::int64_t axis = 0; attributes.get<Integers>(name).empty() && axis < rank; ++axis) axes.push_back(axis);
    if (rank == 0) {  // an empty list would include the batch
      inputs[0] = expand_dims(inputs[0], 1);
      axes = {-1};
    } else {
      for (std::int64_t& axis : axes) axis = from_the_back(axis, call.rank());
    }
    attributes.set(name, axes);
    Vars outputs = recorded(call, inputs, attributes);
    for (std::size_t k = 0; rank == 0 && k < outputs.size(); ++k)
      if (outputs[k].rank() > 1) outputs[k] = squeeze(outputs[k], {1});
    return outputs;
  };
}

BatchRule batch_per_axis(const std::vector<std::pair<std::string, std::int64_t>>& lists) {
  return [=](const BatchCall& call) {
    Attributes attributes = call.attributes;
    for (const auto& [name, first] : lists) {
      Integers list = attributes.get<Integers>(name);
      list.insert(list.begin(), first);
      attributes.set(name, list);
    }
    return recorded(call, call.all_whole(), attributes);
  };
}

Var sum_rows(const Var& x) {
  Axes axes;
  for (std::size_t i = 1; i + 1 < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes.empty() ? x : sum(x, axes);
}

Var first_axis_to(const Var& x, std::int64_t axis) {
  const std::size_t at = normal_axis(axis, x.rank());
  if (at == 0) return x;
  Axes order;
  for (std::size_t i = 1; i < x.rank(); ++i) order.push_back(static_cast<std::int64_t>(i));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), 0);
  return transpose(x, order);
}

Var axis_to_first(const Var& x, std::int64_t axis) {
  const auto at = static_cast<std::int64_t>(normal_axis(axis, x.rank()));
  if (at == 0) return x;
  Axes order{at};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.rank()); ++i)
    if (i != at) order.push_back(i);
  return transpose(x, order);
}

std::uint64_t DrawnKeys::key_of(const Node& node) {
  // A fused call draws with the key of the call that it replaced.
  const Attribute* draws = node.attributes.find("draws");
  return draws ? std::bit_cast<std::uint64_t>(std::get<std::int64_t>(*draws)) : node.site.key;
}

void DrawnKeys::add(const Tape& tape) {
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op->random) keys_.insert(key_of(node));
    if (node.body) add(*node.body);
  }
}

Var with_first_axis(Tape tape, const Node& node, std::int64_t size) {
  Attributes attributes = node.attributes;
  auto shape = attributes.get<Integers>("shape");
  shape.insert(shape.begin(), size);
  attributes.set("shape", shape);
  return record_call(tape, *node.op, {}, attributes)[0];
}

}  // namespace xtape
