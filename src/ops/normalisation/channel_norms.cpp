// group_norm, instance_norm, and batch_norm with given statistics: norms of arrays [batch, channels, ...]. They are
// recorded in other ops.
#include <algorithm>

#include "ops/normalisation/channels.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

namespace xtape {

namespace {
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
  op.shape = [](const OpCall& call) {
    std::vector<ValueType> types{call.inputs[0]};
    types.resize(call.op.outputs.size(), {call.dtype(0), {with_channels(call.shape(0))[1]}});
    return types;
  };
  const auto record = given.record;
  op.expand = [record](const ExpandCall& call) { return record(call.inputs, call.attributes()); };
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
}  // namespace

Vars record_channel_norm(const Op& op, std::vector<Operand> operands, const Var& weight, const Var& bias,
                         const Attributes& attributes) {
  const Var& x = operands[0].var();
  if (!weight.empty()) operands.emplace_back(weight);
  if (weight.empty() && !bias.empty()) operands.emplace_back(ones(x.tape(), bias.shape(), bias.dtype()));
  if (!bias.empty()) operands.emplace_back(bias);
  return apply(op, operands, attributes);
}

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

void list_channel_norms(OpTable& table) {
  for (const Op* op : {&group_norm_op(), &instance_norm_op(), &batch_norm_op()}) table.add(*op);
}

}  // namespace xtape
