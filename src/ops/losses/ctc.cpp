// ctc_loss: connectionist temporal classification, as a scan over time.
#include <limits>

#include "ops/indexing/scatter.hpp"
#include "ops/losses/losses.hpp"
#include "ops/scan/scan.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/ops/reductions.hpp"

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
  const std::int64_t time = log_probs.size(0), size = targets.size(1), blank = call.integer("blank");
  const Var lengths = checked_indices(batched(3, 0), size + 1, false);
  const Var steps = transpose(before(checked_indices(batched(2, 0), time + 1, false), time));
  const Var padding = ~before(lengths, size);
  const Var labels = masked_fill(watch(targets, padding | (targets != blank)), padding, 0);
  Var losses = ctc_losses(log_probs, labels, lengths, steps, blank);
  if (call.flag("zero_infinity")) losses = masked_fill(losses, losses == -log_of_zero, 0);
  if (reduction_of(call.attributes) == "mean") losses = losses / cast(maximum(lengths, 1), losses.dtype());
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

// Linear-chain conditional random fields. Scores, the partition function and the best tags are scans over the steps.

namespace {
/// The operands of a call. Inputs number `first` to `first` + 3 are transitions, mask, start_transitions and
/// end_transitions. The last three may be missing.
struct CrfField {
  Var emissions, transitions, mask, start, end;  // [b, t, n], [n, n], [b, t], [n], [n]

  CrfField(const ExpandCall& call, std::size_t first) : emissions(call.inputs[0]), transitions(call.inputs[first]) {
    const Tape tape = call.tape;
    const Shape& shape = emissions.shape();
    const auto given = [&](std::size_t i, double missing, Dtype dtype, const Shape& wanted) {
      return broadcast_to(call.inputs.size() > i ? call.inputs[i] : full(tape, {}, missing, dtype), wanted);
    };
    mask = given(first + 1, 1, Dtype::boolean, {shape[0], shape[1]});
    start = given(first + 2, 0, emissions.dtype(), {shape[2]});
    end = given(first + 3, 0, emissions.dtype(), {shape[2]});
  }

  /// Returns `values` [b] for sequences that have steps, and 0 for all others.
  Var where_any(const Var& values) const { return masked_fill(values, ~any(mask, {1}), 0); }

  /// Returns for each tag the combined scores [b, n] of all tag sequences that end in this tag. `combine` receives the
  /// scores [b, n, n] of each tag (axis 1) after each previous tag (axis 2). It combines them over the last axis, and
  /// returns scores [b, n] and outputs of the step. Does not use `scan`, because `scan` continues from a past in mode
  /// predict, and an op must be a function of its inputs only.
  template <class Combine>
  Scanned forward(const Combine& combine) const {
    const Var first = mask & (cumsum(cast(mask, Dtype::int64), 1) == 1);  // [b, t]
    const Var to_from = transpose(transitions);
    const ScanFunction cell = [&](const Vars& slices, const Vars& states) {
      auto [arrivals, outputs] = combine(expand_dims(states[0], 1) + to_from);  // [b, n]
      return std::pair(outputs, Vars{slices[0] + where(expand_dims(slices[1], 1), start, arrivals)});
    };
    ScanOptions options;
    options.valid = mask;
    const Shape& shape = emissions.shape();
    const Tape tape = emissions.tape();
    return record_scan(tape, cell, {emissions, first}, {zeros(tape, {shape[0], shape[2]}, emissions.dtype())}, options,
                       {});
  }
};

Var partition_of(const CrfField& field) {
  const Var last =
      field.forward([](const Var& scores) { return std::pair(logsumexp(scores, {-1}), Vars{}); }).states[0];  // [b, n]
  return field.where_any(logsumexp(last + field.end, {-1}));                                                  // [b]
}

Var score_of(const CrfField& field, const Var& given) {
  const Shape& shape = field.mask.shape();
  const Tape tape = field.mask.tape();
  const std::int64_t steps = shape[1], count = field.start.size(0);
  if (steps == 0) return zeros(tape, {shape[0]}, field.emissions.dtype());
  const Var missing = ~field.mask;
  const Var tags = checked_indices(masked_fill(given, missing, 0), count, false);  // [b, t]
  // `place` holds the index of each step, or -1 if the mask leaves out the step. Its running maximum, shifted by one,
  // is the last valid step before each step.
  const Var place = masked_fill(iota(tape, shape, 1), missing, -1);
  const Var so_far = pad(cummax(place, 1).first, {0, 1}, {0, 0}, -1);  // [b, t + 1]
  const Var before = slice(so_far, {0, 0}, {open_end, steps});
  const Var last = slice(so_far, {0, steps}, {open_end, open_end});  // [b, 1]
  const auto tag_at = [&](const Var& places) { return gather(tags, 1, maximum(places, 0)); };

  const Var emitted = squeeze(gather(field.emissions, 2, expand_dims(tags, 2)), {2});
  const Var between = take(reshape(field.transitions, {count * count}), tag_at(before) * count + tags);
  const Var scores = emitted + where(before < 0, take(field.start, tags), between);
  const Var at_end = take(field.end, squeeze(tag_at(last), {1}));
  return field.where_any(sum(masked_fill(scores, missing, 0), {1}) + at_end);
}

Vars expand_crf_score(const ExpandCall& call) {
  return {score_of(CrfField(call, 2), call.inputs[1])};
}
Vars expand_crf_log_partition(const ExpandCall& call) {
  return {partition_of(CrfField(call, 1))};
}
Vars expand_crf_loss(const ExpandCall& call) {
  const CrfField field(call, 2);
  return reduced_losses(call, partition_of(field) - score_of(field, call.inputs[1]));
}

Vars expand_crf_decode(const ExpandCall& call) {
  const CrfField field(call, 1);
  const Scanned forward =
      field.forward([](const Var& scores) { return std::pair(max(scores, {-1}), Vars{argmax(scores, -1)}); });
  const Var scores = forward.states[0] + field.end;  // [b, n]
  // goes from the best tag of a step to the best tag of the step before
  const ScanFunction back = [](const Vars& slices, const Vars& states) {
    return std::pair(states, Vars{squeeze(gather(slices[0], 1, expand_dims(states[0], 1)), {1})});
  };
  ScanOptions options;
  options.reverse = true;
  options.valid = field.mask;
  const Var tags =
      record_scan(call.tape, back, {forward.outputs[0]}, {argmax(scores, -1)}, options, {}).outputs[0];  // [b, t]
  return {tags, field.where_any(max(scores, {-1}))};
}

/// This text is part of the doc of every op in this file.
#define XTAPE_FIELD                                                                                                   \
  " For emissions [b, t, n], the score of tags y is the sum of the emissions of y_i, the transitions [n, n] from y_i" \
  " to y_i+1, the start_transitions [n] of the first tag and the end_transitions [n] of the last tag. Missing"        \
  " transitions count as 0. Steps at which the mask [b, t] is false are ignored."

const ComposedRow crf_score_rows[] = {
    {"crf_score", "emissions #tags transitions !mask? start_transitions? end_transitions?",
     "The scores [b] of tags [b, t] in a conditional random field (Lafferty et al., 2001)." XTAPE_FIELD
     " A tag outside [0, n) is an error when played.",
     expand_crf_score}};
const ComposedRow crf_loss_rows[] = {
    {"crf_loss", "emissions #tags transitions !mask? start_transitions? end_transitions?",
     "-log of the probability of tags [b, t] in a conditional random field: crf_log_partition - crf_score." XTAPE_FIELD
     " A tag outside [0, n) is an error when played.",
     expand_crf_loss}};
const ComposedRow crf_partition_rows[] = {
    {"crf_log_partition", "emissions transitions !mask? start_transitions? end_transitions?",
     "log sum exp [b] of the scores of all tag sequences in a conditional random field (Lafferty et al., "
     "2001)." XTAPE_FIELD " The gradient with respect to emissions is the probability of each tag at each step.",
     expand_crf_log_partition}};
const ComposedRow crf_decode_rows[] = {
    {"crf_decode", "emissions transitions !mask? start_transitions? end_transitions?",
     "Returns the tags int64 [b, t] with the highest score in a conditional random field, and this score [b] (Viterbi, "
     "1967). Tags are 0 where the mask is false." XTAPE_FIELD,
     expand_crf_decode}};
#undef XTAPE_FIELD

/// Checks all operands. Input number `first` contains the transitions. Returns the shape of losses and scores, [b].
Shape crf_losses(const OpCall& call, std::size_t first) {
  const Shape& shape = call.shape(0);
  if (shape.size() != 3 || shape[2] == 0)
    throw ShapeError("emissions must be [b, t, tags] of at least one tag, received " + to_string(shape));
  const std::string what = " for emissions of shape " + to_string(shape);
  require_shape(call, first, {shape[2], shape[2]}, "[tags, tags]" + what);
  const auto require_optional = [&](std::size_t input, const Shape& wanted, const char* axes) {
    if (call.inputs.size() > input && !call.shape(input).empty()) require_shape(call, input, wanted, axes + what);
  };
  require_optional(first + 1, {shape[0], shape[1]}, "[b, t]");
  for (const std::size_t input : {first + 2, first + 3}) require_optional(input, {shape[2]}, "[tags]");
  if (first == 2) require_shape(call, 1, {shape[0], shape[1]}, "[b, t]" + what);
  return {shape[0]};
}
std::vector<ValueType> crf_score_type(const OpCall& call) {
  return {{call.dtype(0), crf_losses(call, 2)}};
}
std::vector<ValueType> crf_loss_type(const OpCall& call) {
  return loss_type(call, crf_losses(call, 2));
}
std::vector<ValueType> crf_partition_type(const OpCall& call) {
  return {{call.dtype(0), crf_losses(call, 1)}};
}
std::vector<ValueType> crf_decode_type(const OpCall& call) {
  const Shape rows = crf_losses(call, 1);
  return {{Dtype::int64, {rows[0], call.shape(0)[1]}}, {call.dtype(0), rows}};
}
}  // namespace

Var crf_score(const Argument& emissions, const Var& tags, const Var& transitions, const Operand& mask,
              const Operand& start_transitions, const Operand& end_transitions) {
  return call_op("crf_score", {emissions, tags, transitions, mask, start_transitions, end_transitions});
}
Var crf_log_partition(const Argument& emissions, const Var& transitions, const Operand& mask,
                      const Operand& start_transitions, const Operand& end_transitions) {
  return call_op("crf_log_partition", {emissions, transitions, mask, start_transitions, end_transitions});
}
Var crf_loss(const Argument& emissions, const Var& tags, const Var& transitions, const Operand& mask,
             const Operand& start_transitions, const Operand& end_transitions, const std::string& reduction) {
  return call_op("crf_loss", {emissions, tags, transitions, mask, start_transitions, end_transitions},
                 {{"reduction", reduction}});
}
std::pair<Var, Var> crf_decode(const Argument& emissions, const Var& transitions, const Operand& mask,
                               const Operand& start_transitions, const Operand& end_transitions) {
  return call_pair("crf_decode", {emissions, transitions, mask, start_transitions, end_transitions});
}

void list_ctc(OpTable& table) {
  static const std::vector<Op> ops = composed(ctc_rows, ctc_type, reduced_loss());
  for (const Op& op : ops) table.add(op);
  static const std::vector<std::vector<Op>> families = [] {
    std::vector<Op> decoders = composed(crf_decode_rows, crf_decode_type);
    for (Op& op : decoders) op.outputs = {"tags", "score"};
    return std::vector{composed(crf_score_rows, crf_score_type), composed(crf_loss_rows, crf_loss_type, reduced_loss()),
                       composed(crf_partition_rows, crf_partition_type), decoders};
  }();
  add_all(table, families);
}

}  // namespace xtape
