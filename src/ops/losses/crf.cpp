// Linear-chain conditional random fields. Scores, the partition function and the best tags are scans over the steps.
#include <algorithm>

#include "ops/indexing/scatter.hpp"
#include "ops/losses/losses.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/scan/scan.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

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

void list_crf(OpTable& table) {
  static const std::vector<std::vector<Op>> families = [] {
    std::vector<Op> decoders = composed(crf_decode_rows, crf_decode_type);
    for (Op& op : decoders) op.outputs = {"tags", "score"};
    return std::vector{composed(crf_score_rows, crf_score_type), composed(crf_loss_rows, crf_loss_type, reduced_loss()),
                       composed(crf_partition_rows, crf_partition_type), decoders};
  }();
  add_all(table, families);
}

}  // namespace xtape
