// Scans of enclosed nodes, and scans in segments. The values inside a segment are computed again when the gradient
// needs them.
#include <algorithm>
#include <functional>

#include "ops/scan/scan.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
constexpr const char* inside_cell =
    "scan: the cell is only being recorded, so what it is given has no value and no gradient yet; play the scan, or "
    "differentiate its results, outside the cell";

/// The functions for the ops that stand for a cell's inputs. They throw if such an op is differentiated or planned
/// before the scan is complete.
Vars no_gradient_inside(const GradientCall&) {
  throw Error(inside_cell);
}
Kernel no_kernel_inside(const KernelCall&) {
  throw Error(inside_cell);
}
}  // namespace

const Op& step_slice_op() {
  static const Op entry{.name = "step_slice",
                        .doc = "The slice of a scan's input at one step.",
                        .inputs = {{"x", Accept::any}},
                        .attributes = {{"axis", AttributeType::integer, "The axis of the steps.", std::nullopt}},
                        .shape =
                            [](const OpCall& call) {
                              Shape shape = call.shape(0);
                              shape.erase(normal_axis(call.integer("axis"), shape.size()));
                              return std::vector<ValueType>{{call.dtype(0), shape}};
                            },
                        .gradient = no_gradient_inside,
                        .lowering = {.kernel = no_kernel_inside}};
  return entry;
}

const Op& step_state_op() {
  static const Op entry{.name = "step_state",
                        .doc = "The state of a scan at the beginning of a step; its input is the initial state.",
                        .inputs = {{"first", Accept::any}},
                        .shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; },
                        .gradient = no_gradient_inside,
                        .lowering = {.kernel = no_kernel_inside}};
  return entry;
}

ScanStep::Recorded record_step(Tape tape, std::size_t size, const Vars& results, const ScanForm& form,
                               const Segments& segments, bool conditional) {
  const auto [body, outer] = tape.enclose(size, results);
  const Tape apart = with_fused_calls(with_draws_apart(*body));
  ScanStep step(tape, apart, form.length, form.reverse, segments);
  const std::vector<ValueId> given = apart.inputs();
  for (std::size_t i = 0; i < given.size(); ++i) step.set_outer(given[i], outer[i]);
  for (std::size_t i = 0; i < apart.size(); ++i) {
    const Node& node = apart.node(i);
    const ValueId id{static_cast<std::int32_t>(i), 0};
    const bool is_slice = node.op == &step_slice_op(), is_state = node.op == &step_state_op();
    if (is_slice) step.set_sequence(id, {step.outer(node.inputs[0]), node.attributes.get<std::int64_t>("axis")});
    if (is_state) step.set_state(id, step.outer(node.inputs[0]));
    if (conditional && (is_slice || is_state) && !step.conditional()) step.set_condition(id);
  }
  std::vector<ScanStep::Stacked> stacked;
  std::vector<ValueId> next;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i < form.stacked())
      stacked.push_back({apart.results()[i], form.output_axes[i]});
    else
      next.push_back(apart.results()[i]);
  }
  return step.record(stacked, next);
}

namespace {
using SegmentFunction = std::function<Vars(const Vars&)>;

/// Records a scan of `step`. `step` maps a slice of each sequence, the states and the non-sequences to the outputs and
/// the next states. Returns the outputs and the last states.
Vars scan_of(Tape tape, const SegmentFunction& step, const Vars& inputs, const ScanForm& form,
             const Segments& segments) {
  const std::size_t size = tape.size();
  const std::size_t first_state = form.sequences();
  Vars given = inputs;
  for (std::size_t k = 0; k < first_state; ++k)
    given[k] = record_call(tape, step_slice_op(), {inputs[k]}, {{"axis", form.input_axes[k]}})[0];
  for (std::size_t k = first_state; k < first_state + static_cast<std::size_t>(form.states); ++k)
    given[k] = record_call(tape, step_state_op(), {inputs[k]}, {})[0];
  ScanStep::Recorded recorded = record_step(tape, size, step(given), form, segments);
  Vars results = std::move(recorded.stacked);
  results.insert(results.end(), recorded.states.begin(), recorded.states.end());
  return results;
}

/// `divided` splits the axis of count * size steps into two axes. `joined` merges the two axes again.
Var divided(const Var& x, std::int64_t axis, std::int64_t count, std::int64_t size) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis)] = size;
  shape.insert(static_cast<std::size_t>(axis), count);
  return reshape(x, shape);
}
Var joined(const Var& x, std::int64_t axis) {
  Shape shape = x.shape();
  const std::int64_t count = shape[static_cast<std::size_t>(axis)];
  shape.erase(static_cast<std::size_t>(axis));
  shape[static_cast<std::size_t>(axis)] *= count;
  return reshape(x, shape);
}
}  // namespace

Vars record_segments(Tape tape, const Tape& body, const Vars& inputs, const ScanForm& form, const Segments& segments) {
  const std::int64_t left = form.length % segments[0], whole = form.length - left;
  const Segments inner(segments.begin() + 1, segments.end());
  ScanForm segment = form, over = form, last = form;
  segment.length = segments[0];
  over.length = whole / segments[0];
  last.length = left;
  const auto in_order = [&](const auto& first, const auto& second) {  // in the order along the axis
    return form.reverse ? std::vector{second, first} : std::vector{first, second};
  };
  const SegmentFunction step = [&](const Vars& given) { return inline_body(tape, body, given); };
  const SegmentFunction kept_step = [&](const Vars& given) {
    return checkpoint([&](const Vars& in) { return scan_of(tape, step, in, segment, inner); }, given);
  };
  Vars given = inputs, given_last = inputs;
  for (std::size_t k = 0; k < form.sequences(); ++k) {
    if (left > 0) {
      const Vars parts = split(inputs[k], in_order(whole, left), form.input_axes[k]);
      given[k] = parts[form.reverse ? 1 : 0];
      given_last[k] = parts[form.reverse ? 0 : 1];
    }
    given[k] = divided(given[k], form.input_axes[k], over.length, segment.length);
  }
  Vars results = scan_of(tape, kept_step, given, over, {});
  for (std::size_t k = 0; k < form.stacked(); ++k) results[k] = joined(results[k], form.output_axes[k]);
  if (left == 0) return results;

  std::copy_n(results.begin() + static_cast<std::ptrdiff_t>(form.stacked()), form.states,
              given_last.begin() + static_cast<std::ptrdiff_t>(form.sequences()));
  Vars ends = scan_of(tape, step, given_last, last, inner);
  for (std::size_t k = 0; k < form.stacked(); ++k) ends[k] = concat(in_order(results[k], ends[k]), form.output_axes[k]);
  return ends;
}

}  // namespace xtape
