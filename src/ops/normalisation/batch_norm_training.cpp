// batch_norm_training, which normalises channels by the statistics of a batch, and its gradient.
#include "ops/normalisation/channels.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

namespace xtape {

namespace {
void require_each(const OpCall& call, std::size_t input, const Shape& x) {
  require_one_each(call.op.inputs[input].name.c_str(), call.shape(input), x);
}

std::vector<ValueType> batch_norm_training_shape(const OpCall& call) {
  const Shape& x = with_channels(call.shape(0));
  std::int64_t count = x[0];
  for (std::size_t axis = 2; axis < x.size(); ++axis) count *= x[axis];
  if (count == 1)
    throw ShapeError("needs more than one number of each channel for a variance, got x of shape " + to_string(x));
  for (std::size_t i = 1; i < call.inputs.size(); ++i) require_each(call, i, x);
  const ValueType each{call.dtype(0), {x[1]}};
  return {call.inputs[0], each, each, each};
}

Axes axes_of_statistics(const Shape& shape) {
  Axes axes{0};
  for (std::size_t axis = 2; axis < shape.size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return axes;
}

Vars expand_batch_norm_training(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Shape& shape = x.shape();
  const Axes axes = axes_of_statistics(shape);
  const Var centre = mean(x, axes);
  const Var centred = x - for_channels(centre, x);
  const Var variance = mean(square(centred), axes);
  const Var rstd = rsqrt(variance + call.attributes().get<double>("epsilon"));
  Var y = centred * for_channels(rstd, x);
  if (call.inputs.size() > 1) y = y * for_channels(call.inputs[1], x);
  if (call.inputs.size() > 2) y = y + for_channels(call.inputs[2], x);
  const double count = shape[1] == 0 ? 0 : static_cast<double>(count_of(shape) / shape[1]);
  return {y, centre, variance * (count / (count - 1)), rstd};
}

std::vector<ValueType> batch_norm_grad_shape(const OpCall& call) {
  const Shape& x = with_channels(call.shape(1));
  if (call.shape(0) != x)
    throw ShapeError("dy must have the shape of x, " + to_string(x) + ", got " + to_string(call.shape(0)));
  for (std::size_t i = 2; i < call.inputs.size(); ++i) require_each(call, i, x);
  const ValueType each{call.dtype(1), {x[1]}};
  std::vector<ValueType> outputs{call.inputs[1]};
  if (call.inputs.size() > 4) outputs.push_back(each);
  if (call.flag("bias")) outputs.push_back(each);
  return outputs;
}

Vars expand_batch_norm_grad(const ExpandCall& call) {
  const Var &dy = call.inputs[0], &x = call.inputs[1];
  const Axes axes = axes_of_statistics(x.shape());
  const Var rstd = for_channels(call.inputs[3], x);
  const Var normal = (x - for_channels(call.inputs[2], x)) * rstd;
  const bool weighted = call.inputs.size() > 4;
  const Var g = weighted ? dy * for_channels(call.inputs[4], x) : dy;
  Vars gradients{rstd * (g - mean(g, axes, true) - normal * mean(g * normal, axes, true))};
  if (weighted) gradients.push_back(sum(dy * normal, axes));
  if (call.attributes().get<bool>("bias")) gradients.push_back(sum(dy, axes));
  return gradients;
}

const Op& batch_norm_grad_op() {
  static const Op entry{
      .name = "batch_norm_grad",
      .doc =
          R"(The gradient of batch_norm_training, given the cotangent of its first output. With xhat = (x - mean) * rstd
           and g = dy * weight, dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), dweight = sum(dy * xhat) and dbias =
           sum(dy). The means and sums run over all axes except the axis of the channels. The op returns dweight if
           there is a weight, and dbias if `bias` is true.)",
      .inputs = {{"dy", Accept::floating},
                 {"x", Accept::floating},
                 {"mean", Accept::floating},
                 {"rstd", Accept::floating},
                 {"weight", Accept::floating, Arity::optional}},
      .outputs = {"dx", "dweight", "dbias"},
      .attributes = {{"bias", AttributeType::boolean, "If true, dbias is computed.", false}},
      .shape = batch_norm_grad_shape,
      .expand = expand_batch_norm_grad,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0, 1}}};
  return entry;
}

/// Declines if a cotangent of the statistics is given, and for second derivatives. The expansion handles these cases.
Vars batch_norm_training_gradient(const GradientCall& call) {
  for (std::size_t output : {1, 2, 3})
    if (!call.cotangents[output].empty()) return {};
  std::vector<Operand> operands = {call.cotangent(), call.inputs[0], call.outputs[1], call.outputs[3]};
  if (call.inputs.size() > 1) operands.push_back(call.inputs[1]);
  return apply(batch_norm_grad_op(), operands, {{"bias", call.inputs.size() > 2}});
}

const Op& batch_norm_training_op() {
  static const Op entry{
      .name = "batch_norm_training",
      .doc =
          R"(batch_norm with the mean and the biased variance of x over all axes except the axis of the channels (Ioffe
           and Szegedy, 2015). Also returns the mean and the unbiased variance, for running averages. Keeps rstd = 1 /
           sqrt(variance + epsilon) of every channel for the gradient.)",
      .inputs = {{"x", Accept::floating},
                 {"weight", Accept::floating, Arity::optional},
                 {"bias", Accept::floating, Arity::optional}},
      .outputs = {"y", "mean", "variance", "rstd"},
      .results = 3,
      .attributes = {epsilon_of_channels()},
      .shape = batch_norm_training_shape,
      .gradient = batch_norm_training_gradient,
      .expand = expand_batch_norm_training,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}}};
  return entry;
}
}  // namespace

BatchNorm batch_norm_training(const Argument& x, const Var& weight, const Var& bias, double epsilon) {
  const Vars all = record_channel_norm(batch_norm_training_op(), {x}, weight, bias, {{"epsilon", epsilon}});
  return {all[0], all[1], all[2]};
}

void list_batch_norm_training(OpTable& table) {
  table.add(batch_norm_training_op());
  table.add(batch_norm_grad_op());
}

}  // namespace xtape
