// embedding_bag: sums of rows of a table.
#include <algorithm>

#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// Returns the shape of the result: the indices without their last axis, then a row of the table.
Shape bags_shape(const Shape& indices, const Shape& weight) {
  Shape shape(indices.begin(), indices.end() - 1);
  for (std::size_t i = 1; i < weight.size(); ++i) shape.push_back(weight[i]);
  return shape;
}

std::vector<ValueType> embedding_bag_shape(const OpCall& call) {
  const auto& mode = call.text("mode");
  if (mode != "sum" && mode != "mean") throw Error("mode '" + mode + "' must be 'sum' or 'mean'");
  if (call.shape(0).empty() || call.shape(1).empty())
    throw ShapeError("indices of shape " + to_string(call.shape(0)) + " and weight of shape " +
                     to_string(call.shape(1)) + " must have at least one axis each");
  if (call.inputs.size() > 2) {
    if (mode != "sum") throw Error("mode '" + mode + "' accepts no per_sample_weights: use 'sum'");
    if (call.shape(2) != call.shape(0))
      throw ShapeError("per_sample_weights of shape " + to_string(call.shape(2)) +
                       " must have the shape of the indices, " + to_string(call.shape(0)));
  }
  return {{call.dtype(1), bags_shape(call.shape(0), call.shape(1))}};
}

Vars expand_embedding_bag(const ExpandCall& call) {
  const Var &indices = call.inputs[0], &weight = call.inputs[1];
  const auto within = static_cast<std::int64_t>(indices.rank()) - 1;  // the axis of the elements of a bag
  Var rows = take(weight, indices);
  if (call.inputs.size() > 2) {
    Shape factors = indices.shape();
    for (std::size_t i = 1; i < weight.rank(); ++i) factors.push_back(1);
    rows = rows * reshape(call.inputs[2], factors);
  }
  const Var total = sum(rows, {within});
  if (call.text("mode") == "sum") return {total};
  return {total / static_cast<double>(std::max<std::int64_t>(1, indices.size(-1)))};
}

/// The result is linear in the rows and in their weights.
Vars embedding_bag_tangent(const TangentCall& call) {
  Var tangent;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.tangents[i].empty()) continue;
    Vars inputs = call.inputs;
    inputs[i] = call.tangents[i];
    const Var part = record_call(inputs[i].tape(), call.op, inputs, call.node.attributes)[0];
    tangent = tangent.empty() ? part : tangent + part;
  }
  return {tangent};
}

/// Bags of all examples read one table. If each example has its own table, vmap maps the expansion.
Vars batch_embedding_bag(const BatchCall& call) {
  if (call.mapped[1]) return {};
  Vars inputs = {call.whole(0), call.inputs[1]};
  if (call.inputs.size() > 2) inputs.push_back(call.whole(2));
  return record_call(call.tape, call.op, inputs, call.attributes);
}

const Op& embedding_bag_op() {
  static const Op entry{
      .name = "embedding_bag",
      .doc = R"(The sum or the mean of rows of `weight`, as torch.nn.functional.embedding_bag. With indices [b, k] and
           mode "sum", y[b] is the sum over k of per_sample_weights[b, k] * weight[indices[b, k]]. The last axis of the
           indices is always the axis of k. Without per_sample_weights, each row counts once. The mean of no rows is 0.
           Indices outside [0, size) are an error when played.)",
      .inputs = {{"indices", Accept::integer},
                 {"weight", Accept::floating},
                 {"per_sample_weights", Accept::floating, Arity::optional}},
      .attributes = {{"mode", AttributeType::text, R"("sum" or "mean". Only "sum" accepts per_sample_weights.)",
                      std::string("mean")}},
      .shape = embedding_bag_shape,
      .batch = batch_embedding_bag,
      .expand = expand_embedding_bag,
      .lowering = {.kernel = kernel_by_name, .cost = {+[](const OpCall& call) {
                                               const auto rows = static_cast<double>(call.shape(0).back());
                                               return 2 * rows * static_cast<double>(count_of(call.outputs[0].shape));
                                             }}},
      .derivative = {.tangent = embedding_bag_tangent}};
  return entry;
}
}  // namespace

Var embedding_bag(const Argument& indices, const Var& weight, const std::string& mode) {
  return apply(embedding_bag_op(), {indices, weight}, {{"mode", mode}})[0];
}
Var embedding_bag(const Argument& indices, const Var& weight, const Var& per_sample_weights) {
  return apply(embedding_bag_op(), {indices, weight, per_sample_weights}, {{"mode", std::string("sum")}})[0];
}

void list_embedding_bag(OpTable& table) {
  table.add(embedding_bag_op());
}

}  // namespace xtape
