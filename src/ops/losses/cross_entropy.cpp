// cross_entropy and its gradient.
#include <limits>

#include "ops/losses/losses.hpp"

namespace xtape {

std::vector<AttributeSpec> loss_attributes() {
  return {
      {"ignore", AttributeType::integer, "Targets with this value have no loss and are not counted.",
       std::int64_t{-100}},
      {"label_smoothing", AttributeType::number, "The probability that is spread evenly over the classes, in [0, 1].",
       0.0},
      {"smoothing_excludes", AttributeType::integer,
       "A class that gets none of the spread probability, such as the padding; -1 for no class.", std::int64_t{-1}}};
}

void check_loss(const OpCall& call, const Shape& logits, std::size_t targets) {
  const Shape rows = without_last(logits);
  require_shape(call, targets, rows, "that of the logits without their last axis, the classes");
  const std::int64_t classes = logits.back();
  if (classes == 0) throw ShapeError("logits of shape " + to_string(logits) + " have no classes");
  const double smoothing = call.number("label_smoothing");
  if (!(smoothing >= 0 && smoothing <= 1))
    throw Error("label_smoothing must be between 0 and 1, got " + std::to_string(smoothing));
  const std::int64_t excluded = call.integer("smoothing_excludes");
  if (excluded >= classes)
    throw Error("smoothing_excludes is class " + std::to_string(excluded) + ", but the logits have " +
                std::to_string(classes) + " classes");
  if (smoothing > 0 && excluded >= 0 && classes == 1)
    throw Error("label_smoothing " + to_string(Attribute(smoothing)) +
                " cannot be spread: smoothing_excludes excludes the only class");
}

namespace {
/// Returns bool [..., classes]: true at the class that is the target.
Var is_target(const Var& targets, const Var& classes) {
  return expand_dims(targets, -1) == classes;
}

Vars expand_cross_entropy(const ExpandCall& call) {
  const Var& logits = call.inputs[0];
  const Var& targets = call.inputs[1];
  const CrossEntropy loss = loss_of(call.attributes, logits.shape());
  const Var classes = iota(call.tape, {loss.classes}, 0, targets.dtype());
  const auto [y, total] = log_softmax_parts(logits, -1);  // [..., classes], [..., 1]
  Var losses = sum(where(is_target(targets, classes), y, 0), {-1}) * -(1 - loss.smoothing);
  if (loss.spread() != 0) losses = losses - sum(where(classes == loss.excluded, 0, y), {-1}) * loss.spread();
  // The kernel throws for targets that are not classes. Here the loss of such a target is NaN.
  const Var known = (targets >= 0) & (targets < loss.classes);
  const Var real = targets != loss.ignore;
  return {sum(where(real, where(known, losses, std::numeric_limits<double>::quiet_NaN()), 0)),
          sum(cast(real, Dtype::int64)), where(real, squeeze(total, {-1}), 0)};
}

/// Returns the loss of each example of the batch. Computes the losses of the rows from the logsumexp that the kernel
/// returns for each row, and sums them for each example. This needs no other array of the size of the logits. Where a
/// target is not a class, the loss is NaN, because the kernel would throw for the whole batch.
Vars batch_cross_entropy(const BatchCall& call) {
  const Var logits = call.whole(0), targets = call.whole(1);
  const CrossEntropy loss = loss_of(call.attributes, logits.shape());
  const Var known = (targets >= 0) & (targets < loss.classes), real = targets != loss.ignore;
  const Var total =
      record_call(call.tape, cross_entropy_op(), {logits, where(known, targets, loss.ignore)}, call.attributes)[2];
  const Var chosen = gather(logits, -1, expand_dims(where(known, targets, 0), -1));
  Var losses = (total - squeeze(chosen, {-1})) * (1 - loss.smoothing);
  if (loss.spread() != 0) {
    const Var classes = iota(call.tape, {loss.classes}, 0, targets.dtype());
    const Var all = loss.excluded < 0 ? logits : where(classes == loss.excluded, 0, logits);
    const auto count = static_cast<double>(loss.classes - (loss.excluded < 0 ? 0 : 1));
    losses = losses + (total * count - sum(all, {-1})) * loss.spread();
  }
  losses = where(real, where(known, losses, std::numeric_limits<double>::quiet_NaN()), 0);
  Axes rows;
  for (std::size_t i = 1; i < targets.rank(); ++i) rows.push_back(static_cast<std::int64_t>(i));
  const auto summed = [&](const Var& x) { return rows.empty() ? x : sum(x, rows); };
  return {summed(losses), summed(cast(real, Dtype::int64)), total};
}

Vars expand_cross_entropy_grad(const ExpandCall& call) {
  const Var& logits = call.inputs[0];
  const Var& targets = call.inputs[1];
  const CrossEntropy loss = loss_of(call.attributes, logits.shape());
  const Var real = targets != loss.ignore;
  const Var classes = iota(call.tape, {loss.classes}, 0, targets.dtype());
  Var wanted = cast(is_target(targets, classes), logits.dtype()) * (1 - loss.smoothing);  // [..., classes]
  if (loss.spread() != 0)
    wanted = wanted + where(classes == loss.excluded, zeros(call.tape, {}, logits.dtype()), loss.spread());
  const Var difference = exp(logits - expand_dims(call.inputs[2], -1)) - wanted;
  return {where(expand_dims(real, -1), difference * call.inputs[3], 0)};
}

}  // namespace

const Op& cross_entropy_grad_op() {
  static const Op entry{
      .name = "cross_entropy_grad",
      .doc = R"(The gradient of cross_entropy with respect to the logits: dlogits = dsum * (exp(logits - logsumexp) -
           q), where q is the target distribution. Rows whose target is ignored get zeros.)",
      .inputs = {{"logits", Accept::floating},
                 {"targets", Accept::integer},
                 {"logsumexp", Accept::floating},
                 {"dsum", Accept::floating}},
      .outputs = {"dlogits"},
      .attributes = loss_attributes(),
      .shape =
          +[](const OpCall& call) {
            check_loss(call, call.shape(0), 1);
            require_shape(call, 2, call.shape(1), "that of the targets");
            require_shape(call, 3, {}, "a single number");
            return std::vector<ValueType>{call.inputs[0]};
          },
      .expand = expand_cross_entropy_grad,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}}};
  return entry;
}

const Op& cross_entropy_op() {
  static const Op entry{
      .name = "cross_entropy",
      .doc =
          R"(The sum of the losses -sum_c q_c log softmax(logits)_c over all targets other than `ignore`, and the int64
           number of these targets. The mean loss is `sum` / `count`. The logits are [..., classes] and the targets
           integers [...]. The target distribution q gives the target 1 - label_smoothing. It spreads the rest evenly
           over all classes (Szegedy et al., 2016; as in PyTorch), except for the class smoothing_excludes. Keeps log
           sum exp(logits) of every row for the gradient (0 where the target is ignored or all logits are -inf). A
           target that is neither a class nor `ignore` is an error when played.)",
      .inputs = {{"logits", Accept::floating}, {"targets", Accept::integer}},
      .outputs = {"sum", "count", "logsumexp"},
      .attributes = loss_attributes(),
      .shape =
          +[](const OpCall& call) {
            check_loss(call, call.shape(0), 1);
            return std::vector<ValueType>{{call.dtype(0), {}}, {Dtype::int64, {}}, {call.dtype(0), call.shape(1)}};
          },
      .gradient =
          +[](const GradientCall& call) {
            if (!call.cotangents[2].empty()) return Vars{};  // the expansion handles second derivatives
            const Vars dlogits =
                apply(cross_entropy_grad_op(), {call.inputs[0], call.inputs[1], call.outputs[2], call.cotangent()},
                      call.attributes);
            return Vars{dlogits[0], Var()};
          },
      .batch = batch_cross_entropy,
      .expand = expand_cross_entropy,
      .lowering = {.kernel = kernel_by_name},
      .derivative = {.kept = 1}};
  return entry;
}

std::pair<Var, Var> cross_entropy_sum(const Argument& logits, const Var& targets, std::int64_t ignore,
                                      double label_smoothing, std::int64_t smoothing_excludes) {
  const Vars results =
      apply(cross_entropy_op(), {logits, targets},
            {{"ignore", ignore}, {"label_smoothing", label_smoothing}, {"smoothing_excludes", smoothing_excludes}});
  return {results[0], results[1]};
}

void list_cross_entropy(OpTable& table) {
  table.add(cross_entropy_op());
  table.add(cross_entropy_grad_op());
}

}  // namespace xtape
