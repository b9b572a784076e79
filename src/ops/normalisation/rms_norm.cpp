// rms_norm and its gradient.
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
std::vector<ValueType> rms_norm_shape(const OpCall& call) {
  const Shape rows = without_last(call.shape(0));
  if (call.inputs.size() > 1)
    require_shape(call, 1, {call.shape(0).back()}, "one number for each index of the last axis of x");
  return {call.inputs[0], {call.dtype(0), rows}};
}

std::vector<ValueType> rms_norm_grad_shape(const OpCall& call) {
  require_shape(call, 0, call.shape(1), "that of x");
  require_shape(call, 2, without_last(call.shape(1)), "that of x without its last axis");
  std::vector<ValueType> outputs = {call.inputs[1]};
  if (call.inputs.size() > 3) {
    require_shape(call, 3, {call.shape(1).back()}, "one number for each index of the last axis of x");
    outputs.push_back(call.inputs[3]);
  }
  return outputs;
}

Vars expand_rms_norm_grad(const ExpandCall& call) {
  const Var& dy = call.inputs[0];
  const Var rstd = expand_dims(call.inputs[2], -1);
  const Var normal = call.inputs[1] * rstd;
  const bool weighted = call.inputs.size() > 3;
  const Var g = weighted ? dy * call.inputs[3] : dy;
  Vars gradients = {rstd * (g - normal * mean(g * normal, {-1}, true))};
  if (weighted) gradients.push_back(sum_to(dy * normal, {dy.size(-1)}));
  return gradients;
}

/// The kernel computes dx for all rows. dweight is a sum over the rows of each example.
Vars batch_rms_norm_grad(const BatchCall& call) {
  if (call.inputs.size() > 3 && call.mapped[3]) return {};
  Vars inputs = call.all_whole();
  if (call.inputs.size() > 3) inputs[3] = call.inputs[3];
  Vars outputs = record_call(call.tape, call.op, inputs, call.attributes);
  if (outputs.size() > 1) outputs[1] = sum_rows(inputs[0] * inputs[1] * expand_dims(inputs[2], -1));
  return outputs;
}

const Op& rms_norm_grad_op() {
  static const Op entry{
      .name = "rms_norm_grad",
      .doc = R"(The gradient of rms_norm. With xhat = x * rstd and g = dy * weight, dx = rstd * (g - xhat * mean(g *
           xhat)), with the mean along the last axis. dweight = sum(dy * xhat), with the sum over all other axes. The op
           returns dweight if there is a weight.)",
      .inputs = {{"dy", Accept::floating},
                 {"x", Accept::floating},
                 {"rstd", Accept::floating},
                 {"weight", Accept::floating, Arity::optional}},
      .outputs = {"dx", "dweight"},
      .shape = rms_norm_grad_shape,
      .batch = batch_rms_norm_grad,
      .expand = expand_rms_norm_grad,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0, 1}}};
  return entry;
}

Vars rms_norm_gradient(const GradientCall& call) {
  if (!call.cotangents[1].empty()) return {};  // the expansion handles second derivatives
  std::vector<Operand> operands = {call.cotangent(), call.inputs[0], call.outputs[1]};
  if (call.inputs.size() > 1) operands.push_back(call.inputs[1]);
  return xtape::apply(rms_norm_grad_op(), operands);
}

Vars expand_rms_norm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var rstd = rsqrt(mean(square(x), {-1}, true) + call.number("epsilon"));
  const Var y = x * rstd;
  return {call.inputs.size() > 1 ? y * call.inputs[1] : y, squeeze(rstd, {-1})};
}

const Op& rms_norm_op() {
  static const Op entry{
      .name = "rms_norm",
      .doc = R"(y = x / sqrt(mean(x^2) + epsilon) * weight, with the mean along the last axis (Zhang and Sennrich,
           2019). The optional weight has one element for each index of this axis. Keeps rstd = 1 / sqrt(mean(x^2) +
           epsilon) of every row for the gradient.)",
      .inputs = {{"x", Accept::floating}, {"weight", Accept::floating, Arity::optional}},
      .outputs = {"y", "rstd"},
      .attributes = {{"epsilon", AttributeType::number, "Added to the mean square, inside the square root.", 1e-6}},
      .shape = rms_norm_shape,
      .gradient = rms_norm_gradient,
      .batch = batch_rows_of_input,
      .expand = expand_rms_norm,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}},
      .derivative = {.kept = 1}};
  return entry;
}
}  // namespace

Var rms_norm(const Argument& x, double epsilon) {
  return apply(rms_norm_op(), {x}, {{"epsilon", epsilon}})[0];
}
Var rms_norm(const Argument& x, const Var& weight, double epsilon) {
  return apply(rms_norm_op(), {x, weight}, {{"epsilon", epsilon}})[0];
}

void list_rms_norm(OpTable& table) {
  table.add(rms_norm_op());
  table.add(rms_norm_grad_op());
  const ValueType x{Dtype::float64, {2, 3}}, places{Dtype::float64, {3}};
  for (const std::vector<ValueType>& sample : {std::vector{x, places}, std::vector{x}})
    table.add({.name = "rms_norm", .op = &rms_norm_op(), .inputs = sample, .attributes = {{"epsilon", 0.371}}});
}

}  // namespace xtape
