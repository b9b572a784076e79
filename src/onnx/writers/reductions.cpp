// Reductions, running sums and sorting.
#include <limits>

#include "onnx/writing.hpp"

namespace xtape::onnx {

namespace {
/// Applies the row's reduction over the axes of the call to the operand in this dtype. Casts the result to the dtype of
/// the call.
Names reduced(const WriteCall& call, Dtype dtype) {
  const std::string x = call.cast(call.inputs[0], call.types[0].dtype, dtype);
  Integers axes = call.integers("axis");
  const std::size_t rank = call.shape().size();
  for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(normal_axis(axis, rank));
  if (axes.empty())
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::string y = x;
  if (rank > 0) y = call.add(call.row->name, {x, call.list(axes)}, {{"keepdims", call.flag("keepdims") ? 1 : 0}});
  return {call.cast(y, dtype, call.type().dtype)};
}

/// Sums and products of integers and bools are int64.
Names summed(const WriteCall& call) {
  return reduced(call, call.type().dtype);
}

Names chosen(const WriteCall& call) {
  return reduced(call, number_dtype(call.types[0].dtype));
}

Names argmax(const WriteCall& call) {
  const Dtype dtype = call.types[0].dtype;
  const std::string x = call.cast(call.inputs[0], dtype, number_dtype(dtype));
  if (call.shape().empty()) return {};
  return {call.add(call.row->name, {x}, {{"axis", call.axis()}, {"keepdims", call.flag("keepdims") ? 1 : 0}})};
}

Names cumsum(const WriteCall& call) {
  const std::string x = call.cast(call.inputs[0], call.types[0].dtype, call.type().dtype);
  return {call.add("CumSum", {x, call.scalar(call.axis(), Dtype::int64)}, {{"reverse", call.flag("reverse") ? 1 : 0}})};
}

Names top_k(const WriteCall& call) {
  const Dtype dtype = call.types[0].dtype, wide = number_dtype(dtype);
  Names found = call.add("TopK", {call.cast(call.inputs[0], dtype, wide), call.list({call.integer("k")})}, 2,
                         {{"axis", call.axis()}, {"largest", call.flag("largest") ? 1 : 0}});
  found[0] = call.cast(found[0], wide, dtype);
  return found;
}

/// A softmax for which rows of -inf give zeros instead of NaN.
Names softmax(const WriteCall& call) {
  if (call.shape().empty()) return {};
  const Dtype dtype = call.type().dtype;
  const std::string most = call.add("ReduceMax", {call.inputs[0], call.list({call.axis()})});
  const std::string masked = call.add("Equal", {most, call.scalar(-std::numeric_limits<double>::infinity(), dtype)});
  const std::string y = call.add("Softmax", call.inputs, {{"axis", call.axis()}});
  return {call.add("Where", {masked, call.scalar(0, dtype), y})};
}
}  // namespace

const WriterRows& reduction_writers() {
  static const WriterRows rows = {
      {"all", chosen, "ReduceMin"},   {"any", chosen, "ReduceMax"}, {"argmax", argmax, "ArgMax"},
      {"argmin", argmax, "ArgMin"},   {"cumsum", cumsum},           {"max", chosen, "ReduceMax"},
      {"mean", summed, "ReduceMean"}, {"min", chosen, "ReduceMin"}, {"prod", summed, "ReduceProd"},
      {"softmax", softmax},           {"sum", summed, "ReduceSum"}, {"top_k", top_k}};
  return rows;
}

}  // namespace xtape::onnx
