// ctc_loss: connectionist temporal classification, as a scan over time.
#include <algorithm>
#include <limits>

#include "ops/indexing/scatter.hpp"
#include "ops/losses/losses.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/scan/scan.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/ops/losses.hpp"

namespace xtape {

namespace {
constexpr double log_of_zero = -std::numeric_limits<double>::infinity();

/// Returns bool [b, size]: whether each of the indices 0 … size - 1 is below the length [b] of a row.
Var before(const Var& lengths, std::int64_t size) {
  return iota(lengths.tape(), {1, size}, 1) < expand_dims(lengths, 1);
}

/// Returns the losses [b] of log_probs [t, b, classes] and labels [b, s]. In each row, only the first `lengths` [b]
/// labels are used, and only the time steps at which `steps` [t, b] is true. The states of the scan are
/// log-probabilities of all alignments so far. One state [b, s + 1] is for alignments that end in the blank before each
/// label or after the last label. The other state [b, s] is for alignments that end in each label.
Var ctc_losses(const Var& log_probs, const Var& labels, const Var& lengths, const Var& steps, std::int64_t blank) {
  const Tape tape = log_probs.tape();
  const std::int64_t time = log_probs.size(0), rows = log_probs.size(1), size = labels.size(1);
  const auto all_but_last = [&](const Var& x) { return slice(x, {0, 0}, {open_end, size}); };
  const auto moved = [](const Var& x, double first) { return pad(x, {0, 1}, {0, 0}, first); };  // [b, s + 1]

  const Var of_blank = slice(log_probs, {0, 0, blank}, {open_end, open_end, blank + 1});                 // [t, b, 1]
  const Var of_labels = gather(log_probs, 2, broadcast_to(expand_dims(labels, 0), {time, rows, size}));  // [t, b, s]
  const Var repeats = labels == all_but_last(pad(labels, {0, 1}, {0, 0}, -1));                           // [b, s]
  const ScanFunction cell = [&](const Vars& slices, const Vars& states) {
    const Var &in_blank = states[0], &in_label = states[1];
    const Var behind = moved(in_label, log_of_zero);  // alignments that end in the preceding label
    const Var skip = masked_fill(all_but_last(behind), repeats, log_of_zero);
    return std::pair(Vars{}, Vars{slices[0] + log_add_exp({in_blank, behind}),
                                  slices[1] + log_add_exp({in_label, all_but_last(in_blank), skip})});
  };
  const Var nothing = full(tape, {rows, size}, log_of_zero, log_probs.dtype());
  ScanOptions options;
  options.axis = 0;
  options.valid = steps;
  // Does not use `scan`, which continues from a past in mode predict. An op must be a function of its inputs only.
  const Vars last = record_scan(tape, cell, {of_blank, of_labels}, {moved(nothing, 0), nothing}, options, {}).states;
  const auto at_end = [&](const Var& x) { return squeeze(gather(x, 1, expand_dims(lengths, 1)), {1}); };  // [b]
  return -log_add_exp({at_end(last[0]), at_end(moved(last[1], log_of_zero))});
}

Vars expand_ctc(const ExpandCall& call) {
  const bool single = call.inputs[0].rank() == 2;
  const auto batched = [&](std::size_t input, std::int64_t axis) {
    return single ? expand_dims(call.inputs[input], axis) : call.inputs[input];
  };
  const Var log_probs = batched(0, 1), targets = cast(batched(1, 0), Dtype::int64);
  const std::int64_t time = log_probs.size(0), size = targets.size(1), blank = integer_of(call, "blank");
  const Var lengths = checked_indices(batched(3, 0), size + 1, false);
  const Var steps = transpose(before(checked_indices(batched(2, 0), time + 1, false), time));
  const Var padding = ~before(lengths, size);
  const Var labels = masked_fill(watch(targets, padding | (targets != blank)), padding, 0);
  Var losses = ctc_losses(log_probs, labels, lengths, steps, blank);
  if (flag_of(call, "zero_infinity")) losses = masked_fill(losses, losses == -log_of_zero, 0);
  if (reduction_of(call.attributes()) == "mean") losses = losses / cast(maximum(lengths, 1), losses.dtype());
  return reduced_losses(call, single ? squeeze(losses, {0}) : losses);
}

const ComposedRow ctc_rows[] = {
    {"ctc_loss",
     "log_probs #targets #input_lengths #target_lengths",
     "The negative logarithm of the probability of targets [b, s], for log-probabilities log_probs [t, b, classes] "
     "(Graves et al., 2006). This probability is the sum over all alignments of the targets. An alignment gives each "
     "step a class; merging equal neighbours and then removing blanks yields the targets. input_lengths and "
     "target_lengths [b] are the numbers of steps and targets that count. For a single sequence, the axis b can be "
     "omitted in all inputs. If there is no alignment, the loss is inf with gradient 0. Reduction 'mean' divides each "
     "loss by maximum(target_lengths, 1) before it takes the mean. A length that is too long, or a target that is the "
     "blank or no class, is an error when played.",
     expand_ctc,
     {{{"blank", "The class of the blank.", 0, AttributeType::integer},
       {"zero_infinity", "If true, losses of inf become 0.", 0, AttributeType::boolean}}}}};

std::vector<ValueType> ctc_type(const OpCall& call) {
  const Shape& shape = call.shape(0);
  if (shape.size() != 2 && shape.size() != 3)
    throw ShapeError("log_probs must be [t, b, classes], or [t, classes] for one sequence, received " +
                     to_string(shape));
  const std::int64_t classes = shape.back(), blank = call.integer("blank");
  if (blank < 0 || blank >= classes)
    throw Error("blank must be one of the " + std::to_string(classes) + " classes of log_probs, " + to_string(shape) +
                ", got " + std::to_string(blank));
  const Shape rows(shape.begin() + 1, shape.end() - 1);
  Shape targets = rows;
  targets.push_back(call.shape(1).empty() ? 0 : call.shape(1).back());
  require_shape(call, 1, targets, "the targets of each sequence of log_probs, " + to_string(shape));
  for (const std::size_t lengths : {2, 3})
    require_shape(call, lengths, rows, "one length for each sequence of log_probs, " + to_string(shape));
  return loss_type(call, rows);
}
}  // namespace

Var ctc_loss(const Argument& log_probs, const Var& targets, const Var& input_lengths, const Var& target_lengths,
             std::int64_t blank, const std::string& reduction, bool zero_infinity) {
  return call_op("ctc_loss", {log_probs, targets, input_lengths, target_lengths},
                 {{"blank", blank}, {"reduction", reduction}, {"zero_infinity", zero_infinity}});
}

void list_ctc(OpTable& table) {
  static const std::vector<Op> ops = composed(ctc_rows, ctc_type, reduced_loss());
  for (const Op& op : ops) table.add(op);
}

}  // namespace xtape
