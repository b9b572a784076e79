// nll_loss and cross_entropy_loss: losses over classes along any axis, with optional weights.
#include "ops/losses/losses.hpp"
#include "tape/calls.hpp"
#include "xtape/ops/losses.hpp"

namespace xtape {

namespace {
/// Returns the axis of the classes, counted from the front.
std::size_t class_axis(const Attributes& attributes, std::size_t rank) {
  const auto axis = attributes.get<std::int64_t>("axis");
  return normal_axis(rank == 1 && axis == 1 ? 0 : axis, rank);
}

/// Returns the losses for log-probabilities. A fraction `smoothing` of each target is spread evenly over the classes.
Vars class_losses(const ExpandCall& call, const Var& logarithms, double smoothing) {
  const Var target = cast(call.inputs[1], Dtype::int64);  // ignore_index is int64, too
  const auto axis = static_cast<std::int64_t>(class_axis(call.attributes, logarithms.rank()));
  const std::int64_t classes = logarithms.shape()[static_cast<std::size_t>(axis)];
  const Var ignored = target == call.integer("ignore_index"), known = masked_fill(target, ignored, 0);
  const bool weighted = call.inputs.size() > 2;
  const Var ones = masked_fill(ones_like(cast(target, logarithms.dtype())), ignored, 0);
  const Var weight = weighted ? masked_fill(take(call.inputs[2], known), ignored, 0) : ones;
  // uses a mask instead of a product, because the log-probability of an ignored target may be -inf
  const Var chosen = squeeze(gather(logarithms, axis, expand_dims(known, axis)), {axis});
  Var losses = -(weight * masked_fill(chosen, ignored, 0));
  if (smoothing > 0) {
    Shape along = Shape::filled(logarithms.rank(), 1);
    along[static_cast<std::size_t>(axis)] = classes;
    const Var all = sum(weighted ? logarithms * reshape(call.inputs[2], along) : logarithms, {axis});
    losses = losses * (1 - smoothing) - masked_fill(all, ignored, 0) * (smoothing / static_cast<double>(classes));
  }
  if (reduction_of(call.attributes) == "mean") return {sum(losses) / sum(weight)};
  return reduced_losses(call, losses);
}

Vars expand_nll(const ExpandCall& call) {
  return class_losses(call, call.inputs[0], 0);
}
Vars expand_cross_entropy_loss(const ExpandCall& call) {
  const auto axis = static_cast<std::int64_t>(class_axis(call.attributes, call.inputs[0].rank()));
  return class_losses(call, log_softmax(call.inputs[0], axis), call.number("label_smoothing"));
}

constexpr AttributeRow ignored_target{"ignore_index", "Targets with this value have loss 0 and weight 0.", -100,
                                      AttributeType::integer};
constexpr AttributeRow of_classes{"axis", "The axis of the classes. For an input with one axis, 1 means axis 0.", 1,
                                  AttributeType::integer};
const ComposedRow class_rows[] = {
    {"nll_loss",
     "input #target weight?",
     "-weight[target] * input[target], for log-probabilities [b, classes, ...] and targets [b, ...]. Reduction 'mean' "
     "divides by the sum of the weights of the targets. A target that is neither a class nor ignore_index is an error "
     "when played.",
     expand_nll,
     {{ignored_target, of_classes}}},
    {"cross_entropy_loss",
     "input #target weight?",
     "(1 - label_smoothing) * nll_loss(log_softmax(input), target), plus label_smoothing / classes times the sum of "
     "-weight * log_softmax(input) over all classes.",
     expand_cross_entropy_loss,
     {{ignored_target,
       of_classes,
       {"label_smoothing", "The probability that is spread evenly over the classes, in [0, 1].", 0}}}},
};

std::vector<ValueType> class_loss(const OpCall& call) {
  Shape shape = call.shape(0);
  if (shape.empty()) throw ShapeError("needs an axis of classes, received an input of shape ()");
  const std::size_t axis = class_axis(call.attributes, shape.size());
  const std::int64_t classes = shape[axis];
  if (classes == 0) throw ShapeError("input of shape " + to_string(shape) + " has no classes");
  shape.erase(axis);
  require_shape(call, 1, shape, "that of the input without the axis of its classes");
  if (call.inputs.size() > 2) require_shape(call, 2, Shape{classes}, "one weight for each class");
  return loss_type(call, shape);
}
/// Returns the operands, with the weight if there is one.
std::vector<Operand> with_weight(const Argument& input, const Var& target, const Var& weight) {
  if (weight.empty()) return {input, target};
  return {input, target, weight};
}
}  // namespace

Var nll_loss(const Argument& input, const Var& target, const std::string& reduction, std::int64_t ignore_index,
             std::int64_t axis) {
  return nll_loss(input, target, Var(), reduction, ignore_index, axis);
}
Var nll_loss(const Argument& input, const Var& target, const Var& weight, const std::string& reduction,
             std::int64_t ignore_index, std::int64_t axis) {
  return call_op("nll_loss", with_weight(input, target, weight),
                 {{"reduction", reduction}, {"ignore_index", ignore_index}, {"axis", axis}});
}
Var cross_entropy_loss(const Argument& input, const Var& target, const std::string& reduction,
                       std::int64_t ignore_index, double label_smoothing, std::int64_t axis) {
  return cross_entropy_loss(input, target, Var(), reduction, ignore_index, label_smoothing, axis);
}
Var cross_entropy_loss(const Argument& input, const Var& target, const Var& weight, const std::string& reduction,
                       std::int64_t ignore_index, double label_smoothing, std::int64_t axis) {
  return call_op(
      "cross_entropy_loss", with_weight(input, target, weight),
      {{"reduction", reduction}, {"ignore_index", ignore_index}, {"label_smoothing", label_smoothing}, {"axis", axis}});
}

Var cross_entropy(const Argument& input, const Var& target, const std::string& reduction, std::int64_t ignore_index,
                  double label_smoothing, std::int64_t axis) {
  if (reduction != "mean" && reduction != "sum")
    return cross_entropy_loss(input, target, reduction, ignore_index, label_smoothing, axis);
  return all_or_nothing(input.tape(input.caller()), nullptr, input.caller(), [&] {
    const auto classes = normal_axis(input.rank() == 1 && axis == 1 ? 0 : axis, input.rank());
    Shape wanted = input.shape(), without_last = input.shape();
    wanted.erase(classes);
    without_last.erase(input.rank() - 1);
    if (target.shape() != wanted)
      throw ShapeError("cross_entropy: the target of shape " + to_string(target.shape()) + " must have shape " +
                       to_string(wanted) + ", that of the input " + to_string(input.shape()) + " without axis " +
                       std::to_string(classes) + ", of its classes" +
                       (target.shape() == without_last ? "; for classes along the last axis, pass axis -1" : ""));
    Axes axes;
    for (std::size_t i = 0; i < input.rank(); ++i)
      if (i != classes) axes.push_back(static_cast<std::int64_t>(i));
    axes.push_back(static_cast<std::int64_t>(classes));
    const Var logits = classes + 1 == input.rank() ? Var(input) : transpose(input, axes);
    const auto [total, count] = cross_entropy_sum(logits, target, ignore_index, label_smoothing);
    return reduction == "sum" ? total : total / cast(count, total.dtype());
  });
}
Var cross_entropy(const Argument& input, const Var& target, const Var& weight, const std::string& reduction,
                  std::int64_t ignore_index, double label_smoothing, std::int64_t axis) {
  if (weight.empty()) return cross_entropy(input, target, reduction, ignore_index, label_smoothing, axis);
  return cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing, axis);
}

void list_class_losses(OpTable& table) {
  static const std::vector<Op> ops = composed(class_rows, class_loss, reduced_loss());
  for (const Op& op : ops) table.add(op);
}

}  // namespace xtape
