// Losses. They are compositions of elementwise ops, which fuse, and sums.
#include <cmath>

#include "ops/elementwise/arithmetic.hpp"
#include "ops/losses/losses.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

const std::string& reduction_of(const Attributes& attributes) {
  return attributes.get<std::string>("reduction");
}

Vars reduced_losses(const ExpandCall& call, const Var& losses) {
  const std::string& reduction = reduction_of(call.attributes);
  if (reduction == "none") return {losses};
  if (reduction == "mean") return {mean(losses)};
  if (reduction == "sum") return {sum(losses)};
  return {sum(losses) / static_cast<double>(losses.rank() == 0 ? 1 : losses.shape()[0])};  // batchmean
}

std::vector<AttributeSpec> reduced_loss() {
  return {{"reduction", AttributeType::text, "'none' for the losses, 'mean' or 'sum'.", std::string("mean")}};
}

namespace {
/// Throws Error if the attribute "reduction" is unknown, or if a numeric attribute is out of range.
void check_attributes_of_loss(const OpCall& call) {
  const std::string& reduction = reduction_of(call.attributes);
  const bool by_batch = call.op.name == "kl_div";
  if (reduction != "none" && reduction != "mean" && reduction != "sum" && !(by_batch && reduction == "batchmean"))
    throw Error(std::string("reduction must be 'none', 'mean'") + (by_batch ? ", 'batchmean'" : "") +
                " or 'sum', got '" + reduction + "'");
  const auto require = [&](const char* name, bool (*holds)(double), const char* range) {
    if (call.attributes.find(name) != nullptr && !holds(call.number(name)))
      throw Error(std::string(name) + " must be " + range + ", got " + to_string(Attribute(call.number(name))));
  };
  require(
      "delta", [](double x) { return x > 0; }, "above 0");
  require(
      "beta", [](double x) { return x >= 0; }, "at least 0");
  require(
      "p", [](double x) { return x > 0; }, "above 0");
  require(
      "label_smoothing", [](double x) { return x >= 0 && x <= 1; }, "between 0 and 1");
}
}  // namespace

std::vector<ValueType> loss_type(const OpCall& call, const Shape& losses) {
  check_attributes_of_loss(call);
  return {{call.dtype(0), reduction_of(call.attributes) == "none" ? losses : Shape{}}};
}

namespace {
Var positive_part(const Var& x) {
  return where(x > 0, x, 0);
}

Vars expand_huber(const ExpandCall& call) {
  const double delta = call.number("delta");
  const Var difference = call.inputs[0] - call.inputs[1], clipped = clip(difference, -delta, delta);
  return reduced_losses(call, clipped * (difference - 0.5 * clipped));
}

Vars expand_smooth_l1(const ExpandCall& call) {
  const double beta = call.number("beta");
  const Var difference = call.inputs[0] - call.inputs[1];
  if (beta == 0) return reduced_losses(call, abs(difference));
  const Var clipped = clip(difference, -beta, beta);
  return reduced_losses(call, clipped / beta * (difference - 0.5 * clipped));
}

Vars expand_kl_div(const ExpandCall& call) {
  const Var &input = call.inputs[0], &target = call.inputs[1];
  if (call.flag("log_target")) return reduced_losses(call, exp(target) * (target - input));
  // Where the target is 0, its logarithm and an input of -inf are ignored.
  const Var none = target == 0;
  return reduced_losses(call, target * (log(masked_fill(target, none, 1)) - masked_fill(input, none, 0)));
}

Vars expand_binary_cross_entropy(const ExpandCall& call) {
  const Var &x = call.inputs[0], &target = call.inputs[1];
  Var of_ones = softplus(-x);
  if (call.inputs.size() > 3) of_ones = of_ones * (1 + (call.inputs[3] - 1) * target);
  const Var losses = (1 - target) * x + of_ones;
  return reduced_losses(call, call.inputs.size() > 2 ? losses * call.inputs[2] : losses);
}

Vars expand_hinge_embedding(const ExpandCall& call) {
  const Var &x = call.inputs[0], &target = call.inputs[1];
  const Var far = positive_part(call.number("margin") - x);
  return reduced_losses(call, where(target == -1, 0, x) + where(target == 1, 0, far));
}

Vars expand_margin_ranking(const ExpandCall& call) {
  return reduced_losses(call,
                        positive_part(call.inputs[2] * (call.inputs[1] - call.inputs[0]) + call.number("margin")));
}

Vars expand_gaussian_nll(const ExpandCall& call) {
  const Var& variance = call.inputs[2];
  const double least = call.number("eps");
  // The second summand is 0 and carries the gradient. Adding a correction to the variance would not always give exactly
  // `least`, because of rounding.
  const Var raised =
      stop_gradient(masked_fill(variance, variance < least, least)) + (variance - stop_gradient(variance));
  Var losses = 0.5 * (log(raised) + square(call.inputs[0] - call.inputs[1]) / raised);
  if (call.flag("full")) losses = losses + 0.9189385332046727;  // log(2 pi) / 2
  return reduced_losses(call, losses);
}

Vars expand_poisson_nll(const ExpandCall& call) {
  const Var &x = call.inputs[0], &target = call.inputs[1];
  Var losses = call.flag("log_input") ? exp(x) - target * x : x - target * log(x + call.number("eps"));
  if (call.flag("full")) {
    const Var small = target <= 1, count = masked_fill(target, small, 1);
    losses = losses + masked_fill(count * log(count) - count + 0.5 * log(count * (2 * M_PI)), small, 0);
  }
  return reduced_losses(call, losses);
}

Vars expand_triplet(const ExpandCall& call) {
  const auto distance = [&](const Var& a, const Var& b) {
    return vector_norm(a - b + call.number("eps"), call.number("p"), {-1});
  };
  const Var &anchor = call.inputs[0], &positive = call.inputs[1], &negative = call.inputs[2];
  Var far = distance(anchor, negative);
  if (call.flag("swap")) far = minimum(far, distance(positive, negative));
  return reduced_losses(call, positive_part(distance(anchor, positive) - far + call.number("margin")));
}

Vars expand_cosine(const ExpandCall& call) {
  const Shape shape = broadcast_shapes({call.inputs[0].shape(), call.inputs[1].shape()});
  const Axes axis{call.integer("axis")};
  const auto unit = [&](const Var& given) {
    const Var x = broadcast_to(given, shape), size = vector_norm(x, 2, axis, true);
    const double least = call.number("eps");
    return x / masked_fill(size, size < least, least);
  };
  return {sum(unit(call.inputs[0]) * unit(call.inputs[1]), axis)};
}

const ComposedRow loss_rows[] = {
    {"mse_loss", "input target", "(input - target) ** 2.",
     +[](const ExpandCall& call) { return reduced_losses(call, square(call.inputs[0] - call.inputs[1])); }},
    {"l1_loss", "input target", "|input - target|.",
     +[](const ExpandCall& call) { return reduced_losses(call, abs(call.inputs[0] - call.inputs[1])); }},
    {"huber_loss",
     "input target",
     "d ** 2 / 2 where d = |input - target| <= delta, else delta * (d - delta / 2) (Huber, 1964).",
     expand_huber,
     {{{"delta", "The distance d from which on the loss is linear; above 0.", 1}}}},
    {"smooth_l1_loss",
     "input target",
     "d ** 2 / (2 * beta) where d = |input - target| < beta, else d - beta / 2 (Girshick, 2015).",
     expand_smooth_l1,
     {{{"beta", "The distance d from which on the loss is linear; at least 0.", 1}}}},
    {"kl_div",
     "input target",
     "target * (log(target) - input), and 0 where target is 0. With log_target: exp(target) * (target - input). "
     "Reduction 'batchmean' divides the sum by the size of the first axis.",
     expand_kl_div,
     {{{"log_target", "If true, targets are log-probabilities, like inputs.", 0, AttributeType::boolean}}}},
    {"binary_cross_entropy_with_logits", "input target weight? pos_weight?",
     "-(pos_weight * target * log(s) + (1 - target) * log(1 - s)) * weight, where s = sigmoid(input), without "
     "overflow.",
     expand_binary_cross_entropy},
    {"hinge_embedding_loss",
     "input target",
     "input where target is 1, maximum(0, margin - input) where it is -1.",
     expand_hinge_embedding,
     {{{"margin", "The least input for target -1 that has no loss.", 1}}}},
    {"margin_ranking_loss",
     "input1 input2 target",
     "maximum(0, -target * (input1 - input2) + margin).",
     expand_margin_ranking,
     {{{"margin", "The least difference of the inputs that has no loss.", 0}}}},
    {"gaussian_nll_loss",
     "input target var",
     "(log(v) + (input - target) ** 2 / v) / 2, where v = maximum(var, eps) (Nix and Weigend, 1994). The gradient with "
     "respect to var ignores the maximum.",
     expand_gaussian_nll,
     {{{"full", "If true, adds log(2 pi) / 2.", 0, AttributeType::boolean},
       {"eps", "The lower bound of the variance.", 1e-6}}}},
    {"poisson_nll_loss",
     "input target",
     "exp(input) - target * input if log_input is true, else input - target * log(input + eps).",
     expand_poisson_nll,
     {{{"log_input", "If true, inputs are logarithms of rates.", 1, AttributeType::boolean},
       {"full", "If true, adds Stirling's approximation of log(target!) where target > 1.", 0, AttributeType::boolean},
       {"eps", "Added to rates in the logarithm.", 1e-8}}}},
};
const ComposedRow triplet_rows[] = {
    {"triplet_margin_loss",
     "anchor positive negative",
     "maximum(0, |anchor - positive| - |anchor - negative| + margin) (Balntas et al., 2016). Here |a - b| is the norm "
     "of a - b + eps of order p along the last axis.",
     expand_triplet,
     {{{"margin", "The least difference of the distances that has no loss.", 1},
       {"p", "The order of the norm, above 0.", 2},
       {"eps", "Added to each element of a difference.", 1e-6},
       {"swap", "If true, |positive - negative| replaces |anchor - negative| where it is smaller.", 0,
        AttributeType::boolean}}}}};
const ComposedRow cosine_rows[] = {
    {"cosine_similarity",
     "x1 x2",
     "The inner product along `axis`, divided by the product of the two norms. A norm below eps counts as eps.",
     expand_cosine,
     {{{"axis", "The axis of the vectors. The result lacks it.", 1, AttributeType::integer},
       {"eps", "The lower bound of each norm.", 1e-8}}}}};

std::vector<ValueType> elementwise_loss(const OpCall& call) {
  return loss_type(call, broadcast_inputs(call));
}
std::vector<ValueType> triplet_loss(const OpCall& call) {
  const Shape losses = without_last(broadcast_inputs(call));
  return loss_type(call, losses);
}
std::vector<ValueType> cosine_type(const OpCall& call) {
  Shape shape = broadcast_inputs(call);
  shape.erase(normal_axis(call.integer("axis"), shape.size()));
  return {{call.dtype(0), shape}};
}

}  // namespace

Var mse_loss(const Argument& input, const Operand& target, const std::string& reduction) {
  return call_op("mse_loss", {input, target}, {{"reduction", reduction}});
}
Var l1_loss(const Argument& input, const Operand& target, const std::string& reduction) {
  return call_op("l1_loss", {input, target}, {{"reduction", reduction}});
}
Var huber_loss(const Argument& input, const Operand& target, const std::string& reduction, double delta) {
  return call_op("huber_loss", {input, target}, {{"reduction", reduction}, {"delta", delta}});
}
Var smooth_l1_loss(const Argument& input, const Operand& target, const std::string& reduction, double beta) {
  return call_op("smooth_l1_loss", {input, target}, {{"reduction", reduction}, {"beta", beta}});
}
Var kl_div(const Argument& input, const Operand& target, const std::string& reduction, bool log_target) {
  return call_op("kl_div", {input, target}, {{"reduction", reduction}, {"log_target", log_target}});
}
Var binary_cross_entropy_with_logits(const Argument& input, const Operand& target, const std::string& reduction,
                                     const Operand& weight, const Operand& pos_weight) {
  return call_op("binary_cross_entropy_with_logits", {input, target, weight, pos_weight}, {{"reduction", reduction}});
}
Var hinge_embedding_loss(const Argument& input, const Operand& target, const std::string& reduction, double margin) {
  return call_op("hinge_embedding_loss", {input, target}, {{"reduction", reduction}, {"margin", margin}});
}
Var margin_ranking_loss(const Argument& input1, const Operand& input2, const Operand& target,
                        const std::string& reduction, double margin) {
  return call_op("margin_ranking_loss", {input1, input2, target}, {{"reduction", reduction}, {"margin", margin}});
}
Var gaussian_nll_loss(const Argument& input, const Operand& target, const Operand& var, const std::string& reduction,
                      bool full, double eps) {
  return call_op("gaussian_nll_loss", {input, target, var}, {{"reduction", reduction}, {"full", full}, {"eps", eps}});
}
Var poisson_nll_loss(const Argument& input, const Operand& target, const std::string& reduction, bool log_input,
                     bool full, double eps) {
  return call_op("poisson_nll_loss", {input, target},
                 {{"reduction", reduction}, {"log_input", log_input}, {"full", full}, {"eps", eps}});
}
Var triplet_margin_loss(const Argument& anchor, const Operand& positive, const Operand& negative,
                        const std::string& reduction, double margin, double p, double eps, bool swap) {
  return call_op("triplet_margin_loss", {anchor, positive, negative},
                 {{"reduction", reduction}, {"margin", margin}, {"p", p}, {"eps", eps}, {"swap", swap}});
}
Var cosine_similarity(const Argument& x1, const Operand& x2, std::int64_t axis, double eps) {
  return call_op("cosine_similarity", {x1, x2}, {{"axis", axis}, {"eps", eps}});
}
void list_composed_losses(OpTable& table) {
  static const std::vector<std::vector<Op>> families{composed(loss_rows, elementwise_loss, reduced_loss()),
                                                     composed(triplet_rows, triplet_loss, reduced_loss()),
                                                     composed(cosine_rows, cosine_type)};
  add_all(table, families);
}

}  // namespace xtape
