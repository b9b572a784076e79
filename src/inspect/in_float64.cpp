#include "base/arrays/elements.hpp"
#include "inspect/node_by_node.hpp"
#include "tape/calls.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
Dtype widened(Dtype dtype) {
  return is_floating(dtype) ? Dtype::float64 : dtype;
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
  convert_floats(array, wide);
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
  try {
    node.outputs = checked_types({*node.op, node.attributes, inputs, {}, node.body.get(), {}});
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
