// layer_norm and its gradient.
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
AttributeSpec epsilon_spec() {
  return {"epsilon", AttributeType::number, "Added to the variance, inside the square root.", 1e-5};
}

std::vector<ValueType> layer_norm_shape(const OpCall& call) {
  const Shape rows = without_last(call.shape(0));
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    require_shape(call, i, {call.shape(0).back()}, "one number for each index of the last axis of x");
  return {call.inputs[0], {call.dtype(0), rows}, {call.dtype(0), rows}};
}

Vars expand_layer_norm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var centre = mean(x, {-1}, true);
  const Var centred = x - centre;
  const Var rstd = rsqrt(mean(square(centred), {-1}, true) + call.number("epsilon"));
  Var y = centred * rstd;
  if (call.inputs.size() > 1) y = y * call.inputs[1];
  if (call.inputs.size() > 2) y = y + call.inputs[2];
  return {y, squeeze(centre, {-1}), squeeze(rstd, {-1})};
}

std::vector<ValueType> layer_norm_grad_shape(const OpCall& call) {
  const Shape rows = without_last(call.shape(1));
  require_shape(call, 0, call.shape(1), "that of x");
  require_shape(call, 2, rows, "that of x without its last axis");
  require_shape(call, 3, rows, "that of x without its last axis");
  std::vector<ValueType> outputs = {call.inputs[1]};
  if (call.inputs.size() > 4) {
    require_shape(call, 4, {call.shape(1).back()}, "one number for each index of the last axis of x");
    outputs.push_back(call.inputs[4]);
  }
  if (call.flag("bias")) outputs.push_back({call.dtype(1), {call.shape(1).back()}});
  return outputs;
}

Vars expand_layer_norm_grad(const ExpandCall& call) {
  const Var& dy = call.inputs[0];
  const Var rstd = expand_dims(call.inputs[3], -1);
  const Var normal = (call.inputs[1] - expand_dims(call.inputs[2], -1)) * rstd;
  const bool weighted = call.inputs.size() > 4;
  const Shape places = {dy.size(-1)};
  const Var g = weighted ? dy * call.inputs[4] : dy;
  const Var common = mean(g, {-1}, true), along = mean(g * normal, {-1}, true);
  Vars gradients = {rstd * (g - common - normal * along)};
  if (weighted) gradients.push_back(sum_to(dy * normal, places));
  if (call.flag("bias")) gradients.push_back(sum_to(dy, places));
  return gradients;
}

/// The kernel computes dx for all rows. The other gradients are sums over the rows of each example.
Vars batch_layer_norm_grad(const BatchCall& call) {
  if (call.inputs.size() > 4 && call.mapped[4]) return {};
  Vars inputs = call.all_whole();
  if (call.inputs.size() > 4) inputs[4] = call.inputs[4];
  Vars outputs = record_call(call.tape, call.op, inputs, call.attributes);
  outputs.resize(1);
  const Var& dy = inputs[0];
  if (call.inputs.size() > 4)
    outputs.push_back(sum_rows(dy * (inputs[1] - expand_dims(inputs[2], -1)) * expand_dims(inputs[3], -1)));
  if (call.flag("bias")) outputs.push_back(sum_rows(dy));
  return outputs;
}

const Op& layer_norm_grad_op() {
  static const Op entry{
      .name = "layer_norm_grad",
      .doc = R"(The gradient of layer_norm. With xhat = (x - mean) * rstd and g = dy * weight, dx = rstd * (g - mean(g)
           - xhat * mean(g * xhat)), with the means along the last axis. dweight = sum(dy * xhat) and dbias = sum(dy),
           with the sums over all other axes. The op returns dweight if there is a weight, and dbias if `bias` is
           true.)",
      .inputs = {{"dy", Accept::floating},
                 {"x", Accept::floating},
                 {"mean", Accept::floating},
                 {"rstd", Accept::floating},
                 {"weight", Accept::floating, Arity::optional}},
      .outputs = {"dx", "dweight", "dbias"},
      .attributes = {{"bias", AttributeType::boolean, "If true, dbias is computed.", false}},
      .shape = layer_norm_grad_shape,
      .batch = batch_layer_norm_grad,
      .expand = expand_layer_norm_grad,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0, 1}}};
  return entry;
}

Vars layer_norm_gradient(const GradientCall& call) {
  // The expansion handles second derivatives.
  if (!call.cotangents[1].empty() || !call.cotangents[2].empty()) return {};
  std::vector<Operand> operands = {call.cotangent(), call.inputs[0], call.outputs[1], call.outputs[2]};
  if (call.inputs.size() > 1) operands.push_back(call.inputs[1]);
  return xtape::apply(layer_norm_grad_op(), operands, {{"bias", call.inputs.size() > 2}});
}

const Op& layer_norm_op() {
  static const Op entry{
      .name = "layer_norm",
      .doc = R"(y = (x - mean) / sqrt(variance + epsilon) * weight + bias, with the mean and the (biased) variance of x
           along its last axis (Ba et al., 2016). The weight and the bias have one element for each index of this axis.
           The bias, or both, can be omitted. Keeps the mean and rstd = 1 / sqrt(variance + epsilon) of every row for
           the gradient.)",
      .inputs = {{"x", Accept::floating},
                 {"weight", Accept::floating, Arity::optional},
                 {"bias", Accept::floating, Arity::optional}},
      .outputs = {"y", "mean", "rstd"},
      .attributes = {epsilon_spec()},
      .shape = layer_norm_shape,
      .gradient = layer_norm_gradient,
      .batch = batch_rows_of_input,
      .expand = expand_layer_norm,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}},
      .derivative = {.kept = 2}};
  return entry;
}
}  // namespace

Var layer_norm(const Argument& x, double epsilon) {
  return apply(layer_norm_op(), {x}, {{"epsilon", epsilon}})[0];
}
Var layer_norm(const Argument& x, const Var& weight, double epsilon) {
  return apply(layer_norm_op(), {x, weight}, {{"epsilon", epsilon}})[0];
}
Var layer_norm(const Argument& x, const Var& weight, const Var& bias, double epsilon) {
  return apply(layer_norm_op(), {x, weight, bias}, {{"epsilon", epsilon}})[0];
}

void list_layer_norm(OpTable& table) {
  table.add(layer_norm_op());
  table.add(layer_norm_grad_op());
  const ValueType x{Dtype::float64, {2, 3}}, places{Dtype::float64, {3}};
  for (const std::vector<ValueType>& sample : {std::vector{x, places, places}, std::vector{x, places}, std::vector{x}})
    table.add({.name = "layer_norm", .op = &layer_norm_op(), .inputs = sample, .attributes = {{"epsilon", 0.371}}});
}

}  // namespace xtape
