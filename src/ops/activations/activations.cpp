// Activation functions. They are compositions, because a separate tile would not be faster than the fused ops.
#include "xtape/ops/activations.hpp"

#include "ops/elementwise/arithmetic.hpp"

namespace xtape {

namespace {
/// Returns x where it is positive, and scale * expm1(x / scale_in) elsewhere. Where x is positive, expm1 receives 0 in
/// place of x / scale_in, because the gradient for a large x would be 0 times infinity.
Var exponential_unit(const Var& x, double scale, double scale_in) {
  const Var positive = x > 0, below = masked_fill(x, positive, 0);
  return where(positive, x, expm1(scale_in == 1 ? below : below / scale_in) * scale);
}

/// The constants of Klambauer et al. (2017).
constexpr double selu_alpha = 1.6732632423543772848170429916717, selu_scale = 1.0507009873554804934193349852946;

Var six_steps(const Var& x) {
  return clip(x + 3, 0, 6) / 6;
}

Vars expand_prelu(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  Var weight = call.inputs[1];
  if (count_of(weight.shape()) != 1 && x.rank() > 2) {
    Shape along = Shape::filled(x.rank() - 1, 1);
    along[0] = weight.shape()[0];
    weight = reshape(weight, along);
  } else if (x.rank() < weight.rank()) {
    weight = reshape(weight, {});
  }
  const Var positive = x > 0;  // there x may be infinite, and 0 times infinity would give the weight a gradient of NaN
  return {where(positive, x, weight * masked_fill(x, positive, 0))};
}

Vars expand_softshrink(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const double lambda = call.number("lambd");
  return {where(x > lambda, x - lambda, where(x < -lambda, x + lambda, x * 0))};
}

Vars expand_glu(const ExpandCall& call) {
  const Vars halves = split(call.inputs[0], 2, call.integer("axis"));
  return {halves[0] * sigmoid(halves[1])};
}

const ComposedRow activation_rows[] = {
    {"elu",
     "x",
     "x where x > 0, else alpha * (exp(x) - 1) (Clevert et al., 2015).",
     +[](const ExpandCall& call) { return Vars{exponential_unit(call.inputs[0], call.number("alpha"), 1)}; },
     {{{"alpha", "The limit for x towards -inf is -alpha.", 1}}}},
    {"selu", "x",
     "1.0507… times elu with alpha 1.6732…, which keeps mean 0 and variance 1 from layer to layer (Klambauer et al., "
     "2017).",
     +[](const ExpandCall& call) { return Vars{exponential_unit(call.inputs[0], selu_alpha, 1) * selu_scale}; }},
    {"celu",
     "x",
     "x where x > 0, else alpha * (exp(x / alpha) - 1) (Barron, 2017).",
     +[](const ExpandCall& call) {
       const double alpha = call.number("alpha");
       return Vars{exponential_unit(call.inputs[0], alpha, alpha)};
     },
     {{{"alpha", "The limit for x towards -inf is -alpha. Must not be 0.", 1}}}},
    {"leaky_relu",
     "x",
     "x where x > 0, else negative_slope * x (Maas et al., 2013).",
     +[](const ExpandCall& call) {
       const Var& x = call.inputs[0];
       return Vars{where(x > 0, x, x * call.number("negative_slope"))};
     },
     {{{"negative_slope", "The slope for negative x.", 0.01}}}},
    {"hardswish", "x", "x * clip(x + 3, 0, 6) / 6 (Howard et al., 2019).",
     +[](const ExpandCall& call) { return Vars{call.inputs[0] * six_steps(call.inputs[0])}; }},
    {"hardsigmoid", "x", "clip(x + 3, 0, 6) / 6. The gradient is that of clip.",
     +[](const ExpandCall& call) { return Vars{six_steps(call.inputs[0])}; }},
    {"hardtanh",
     "x",
     "clip(x, min_val, max_val). The gradient is that of clip.",
     +[](const ExpandCall& call) { return Vars{clip(call.inputs[0], call.number("min_val"), call.number("max_val"))}; },
     {{{"min_val", "The lower bound.", -1}, {"max_val", "The upper bound.", 1}}}},
    {"relu6", "x", "clip(x, 0, 6). The gradient is that of clip.",
     +[](const ExpandCall& call) { return Vars{clip(call.inputs[0], 0, 6)}; }},
    {"mish", "x", "x * tanh(softplus(x)) (Misra, 2019).",
     +[](const ExpandCall& call) { return Vars{call.inputs[0] * tanh(softplus(call.inputs[0]))}; }},
    {"softsign", "x", "x / (1 + |x|).",
     +[](const ExpandCall& call) { return Vars{call.inputs[0] / (1 + abs(call.inputs[0]))}; }},
    {"log_sigmoid", "x", "log(sigmoid(x)), that is -softplus(-x).",
     +[](const ExpandCall& call) { return Vars{-softplus(-call.inputs[0])}; }},
    {"tanhshrink", "x", "x - tanh(x).",
     +[](const ExpandCall& call) { return Vars{call.inputs[0] - tanh(call.inputs[0])}; }},
    {"hardshrink",
     "x",
     "x where |x| > lambd, else 0.",
     +[](const ExpandCall& call) {
       const Var& x = call.inputs[0];
       return Vars{masked_fill(x, abs(x) <= call.number("lambd"), 0)};
     },
     {{{"lambd", "Elements with |x| <= lambd become 0.", 0.5}}}},
    {"softshrink",
     "x",
     "x - lambd where x > lambd, x + lambd where x < -lambd, else 0.",
     expand_softshrink,
     {{{"lambd", "The distance by which x moves towards 0.", 0.5}}}},
    {"threshold",
     "x",
     "x where x > threshold, else `value`. NaN stays NaN.",
     +[](const ExpandCall& call) {
       const Var& x = call.inputs[0];
       return Vars{masked_fill(x, x <= call.number("threshold"), call.number("value"))};
     },
     {{{"threshold", "Elements that are not larger become `value`.", 0}, {"value", "The replacement.", 0}}}},
};

const ComposedRow prelu_row[] = {{"prelu", "x weight",
                                  "x where x > 0, else weight * x (He et al., 2015). The weight has a single element, "
                                  "or one element for each index of axis 1 of x.",
                                  expand_prelu}};
const ComposedRow glu_row[] = {
    {"glu",
     "x",
     "a * sigmoid(b), where a and b are the two halves of x along `axis` (Dauphin et al., 2017).",
     expand_glu,
     {{{"axis", "The axis that is halved; its size must be even.", -1, AttributeType::integer}}}}};

std::vector<ValueType> prelu_type(const OpCall& call) {
  const Shape &x = call.shape(0), &weight = call.shape(1);
  const bool one = weight.size() <= 1 && count_of(weight) == 1;
  if (!one && (x.size() < 2 || weight != Shape{x[1]}))
    throw ShapeError("the weight of shape " + to_string(weight) + " must have one element, or one for each index of " +
                     "axis 1 of x, which has shape " + to_string(x));
  return {call.inputs[0]};
}

std::vector<ValueType> glu_type(const OpCall& call) {
  Shape shape = call.shape(0);
  const std::size_t axis = axis_of(call);
  if (shape[axis] % 2 != 0)
    throw ShapeError("cannot halve axis " + std::to_string(axis) + " of shape " + to_string(shape) +
                     ": its size must be even");
  shape[axis] /= 2;
  return {{call.dtype(0), shape}};
}

/// Returns the type of an op with one array, whose numeric attributes only the expansion reads.
std::vector<ValueType> activation_type(const OpCall& call) {
  if (call.op.name == "celu" && call.number("alpha") == 0) throw Error("alpha must not be 0");
  if (call.op.name == "hardtanh" && !(call.number("min_val") <= call.number("max_val")))
    throw Error("min_val must not be above max_val, got min_val " + to_string(Attribute(call.number("min_val"))) +
                " and max_val " + to_string(Attribute(call.number("max_val"))));
  return same_dtype(call);
}
}  // namespace

XTAPE_WITH(elu, alpha)
XTAPE_UNARY(selu)
XTAPE_WITH(celu, alpha)
XTAPE_WITH(leaky_relu, negative_slope)
XTAPE_UNARY(hardswish)
XTAPE_UNARY(hardsigmoid)
XTAPE_UNARY(relu6)
XTAPE_UNARY(mish)
XTAPE_UNARY(softsign)
XTAPE_UNARY(log_sigmoid)
XTAPE_UNARY(tanhshrink)
XTAPE_WITH(hardshrink, lambd)
XTAPE_WITH(softshrink, lambd)
Var prelu(const Argument& x, const Var& weight) {
  return call_op("prelu", {x, weight});
}
Var hardtanh(const Argument& x, double min_val, double max_val) {
  return call_op("hardtanh", {x}, {{"min_val", min_val}, {"max_val", max_val}});
}
Var threshold(const Argument& x, double threshold, double value) {
  return call_op("threshold", {x}, {{"threshold", threshold}, {"value", value}});
}
Var glu(const Argument& x, std::int64_t axis) {
  return call_op("glu", {x}, {{"axis", axis}});
}

void list_activations(OpTable& table) {
  static const std::vector<Op> ops = composed(activation_rows, activation_type);
  static const std::vector<Op> shaped[] = {composed(prelu_row, prelu_type), composed(glu_row, glu_type)};
  for (const Op& op : ops) table.add(op);
  for (const auto& each : shaped) table.add(each[0]);
}

}  // namespace xtape
