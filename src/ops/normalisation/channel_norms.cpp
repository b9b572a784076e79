// Norms of arrays [batch, channels, ...] with one number per channel: group_norm, instance_norm, and batch_norm with
// given statistics, which are recorded in other ops; and batch_norm_training.
#include <algorithm>
#include <string>
#include <vector>

#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/convolution.hpp"

namespace xtape {

namespace {
/// Returns the shape. Throws if it does not have a batch and channels.
const Shape& with_channels(const Shape& x) {
  if (x.size() < 2) throw ShapeError("needs x with a batch and channels as its first axes, got " + to_string(x));
  return x;
}

/// Throws ShapeError, with the name `name`, unless `numbers` has one number for each channel of x.
void require_one_each(const char* name, const Shape& numbers, const Shape& x) {
  const std::int64_t channels = with_channels(x)[1];
  if (numbers != Shape{channels})
    throw ShapeError(std::string(name) + " must have one number for each of the " + std::to_string(channels) +
                     " channels of x, " + to_string(x) + ", got " + to_string(numbers));
}

/// Returns one number for each channel of x as an array that broadcasts with x.
Var for_channels(const Var& numbers, const Var& x) {
  Shape shape = Shape::filled(x.rank() - 1, 1);
  shape[0] = x.shape()[1];
  return reshape(numbers, shape);
}

AttributeSpec epsilon_of_channels() {
  return {"epsilon", AttributeType::number, "Added to the variance, inside the square root.", 1e-5};
}

/// Returns the numbers called `name`, one for each channel of x, as an array that broadcasts with x.
Var for_channels(const char* name, const Var& numbers, const Var& x) {
  require_one_each(name, numbers.shape(), x.shape());
  return for_channels(numbers, x);
}

/// Returns x times the weight plus the bias. The weight is input number `first`, and the bias is the next input. The
/// bias, or both, may be missing.
Var scaled(Var x, const Vars& inputs, std::size_t first) {
  if (inputs.size() > first) x = x * for_channels("weight", inputs[first], x);
  if (inputs.size() > first + 1) x = x + for_channels("bias", inputs[first + 1], x);
  return x;
}

Vars grouped(const Vars& inputs, const Attributes& attributes) {
  const Var& x = inputs[0];
  const Shape& shape = with_channels(x.shape());
  // instance_norm has no attribute for groups: each channel is a group
  const Attribute* given = attributes.find("groups");
  const std::int64_t groups = given == nullptr ? std::max<std::int64_t>(1, shape[1]) : std::get<std::int64_t>(*given);
  if (groups < 1 || shape[1] % groups != 0)
    throw ShapeError("groups must divide the channels of x, " + to_string(shape) + ", got " + std::to_string(groups));
  const std::int64_t size = shape[0] == 0 ? 0 : count_of(shape) / shape[0] / groups;
  const Var normal = layer_norm(reshape(x, {shape[0], groups, size}), attributes.get<double>("epsilon"));
  return {scaled(reshape(normal, shape), inputs, 1)};
}

Vars by_given(const Vars& inputs, const Attributes& attributes) {
  const Var& x = inputs[0];
  const Var rstd = rsqrt(inputs[2] + attributes.get<double>("epsilon"));
  return {scaled((x - for_channels("mean", inputs[1], x)) * for_channels("variance", rstd, x), inputs, 3)};
}

/// A norm: its name, the function that records it, and its other inputs between x and the weight.
struct Norm {
  const char *name, *doc;
  Vars (*record)(const Vars&, const Attributes&);
  std::vector<std::string> inputs, outputs;
};

Op norm(const Norm& given) {
  Op op;
  op.name = given.name;
  op.doc = given.doc;
  op.inputs = {{"x", Accept::floating}};
  for (const std::string& name : given.inputs) op.inputs.push_back({name, Accept::floating});
  for (const char* name : {"weight", "bias"}) op.inputs.push_back({name, Accept::floating, Arity::optional});
  op.outputs = given.outputs;
  op.attributes = {epsilon_of_channels()};
  op.shape = +[](const OpCall& call) {
    std::vector<ValueType> types{call.inputs[0]};
    types.resize(call.op.outputs.size(), {call.dtype(0), {with_channels(call.shape(0))[1]}});
    return types;
  };
  const auto record = given.record;
  op.expand = [record](const ExpandCall& call) { return record(call.inputs, call.attributes); };
  op.record = [record](Tape, const Op&, const Vars& inputs, const Attributes& attributes) {
    return record(inputs, attributes);
  };
  return op;
}

const Op& group_norm_op() {
  static const Op entry = [] {
    Op op = norm(
        {"group_norm",
         R"(The channels of x [b, c, ...] are cut into groups. Each group of each example is normalised to mean 0 and
           variance 1. The result is multiplied by the weight, and the bias is added; both have one number per channel.
           Recorded as layer_norm.)",
         grouped,
         {},
         {"y"}});
    op.attributes.push_back({"groups", AttributeType::integer,
                             "The number of groups, which must divide the number of channels.", std::nullopt});
    return op;
  }();
  return entry;
}
const Op& instance_norm_op() {
  static const Op entry =
      norm({"instance_norm", R"(group_norm with each channel as a group of its own.)", grouped, {}, {"y"}});
  return entry;
}
const Op& batch_norm_op() {
  static const Op entry = norm(
      {"batch_norm",
       R"((x - mean) / sqrt(variance + epsilon) * weight + bias: the norm with given statistics, for evaluation. The
           input x is [b, c, ...]; the other inputs have one number per channel.)",
       by_given,
       {"mean", "variance"},
       {"y"}});
  return entry;
}

/// Records a norm of the operands with a weight and a bias. Both may be empty.
Vars record_channel_norm(const Op& op, std::vector<Operand> operands, const Var& weight, const Var& bias,
                         const Attributes& attributes) {
  const Var& x = operands[0].var();
  if (!weight.empty()) operands.emplace_back(weight);
  if (weight.empty() && !bias.empty()) operands.emplace_back(ones(x.tape(), bias.shape(), bias.dtype()));
  if (!bias.empty()) operands.emplace_back(bias);
  return apply(op, operands, attributes);
}
}  // namespace

Var group_norm(const Argument& x, std::int64_t groups, const Var& weight, const Var& bias, double epsilon) {
  return record_channel_norm(group_norm_op(), {x}, weight, bias, {{"groups", groups}, {"epsilon", epsilon}})[0];
}
Var instance_norm(const Argument& x, const Var& weight, const Var& bias, double epsilon) {
  return record_channel_norm(instance_norm_op(), {x}, weight, bias, {{"epsilon", epsilon}})[0];
}
Var batch_norm(const Argument& x, const Var& mean, const Var& variance, const Var& weight, const Var& bias,
               double epsilon) {
  return record_channel_norm(batch_norm_op(), {x, mean, variance}, weight, bias, {{"epsilon", epsilon}})[0];
}

// batch_norm_training, which normalises channels by the statistics of a batch, and its gradient.

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
  const Var rstd = rsqrt(variance + call.number("epsilon"));
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
  const Var common = mean(g, axes, true), along = mean(g * normal, axes, true);
  Vars gradients{rstd * (g - common - normal * along)};
  if (weighted) gradients.push_back(sum(dy * normal, axes));
  if (call.flag("bias")) gradients.push_back(sum(dy, axes));
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
      .attributes = {epsilon_of_channels()},
      .shape = batch_norm_training_shape,
      .gradient = batch_norm_training_gradient,
      .expand = expand_batch_norm_training,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}},
      .derivative = {.kept = 1}};
  return entry;
}
}  // namespace

BatchNorm batch_norm_training(const Argument& x, const Var& weight, const Var& bias, double epsilon) {
  const Vars all = record_channel_norm(batch_norm_training_op(), {x}, weight, bias, {{"epsilon", epsilon}});
  return {all[0], all[1], all[2]};
}

void list_channel_norms(OpTable& table) {
  for (const Op* op : {&group_norm_op(), &instance_norm_op(), &batch_norm_op()}) table.add(*op);
  table.add(batch_norm_training_op());
  table.add(batch_norm_grad_op());
}

}  // namespace xtape
