// Scans of enclosed nodes, and scans in segments. The values inside a segment are computed again when the gradient
// needs them.
#include <algorithm>
#include <functional>

#include "ops/recording/enclosed.hpp"
#include "ops/scan/scan.hpp"
#include "rewrite/fusions.hpp"
#include "tape/graph.hpp"

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
                            +[](const OpCall& call) {
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
                        .shape = +[](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; },
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

// Prepares the body of a scan. Separates random draws from other ops, and applies rules.

// A scan over tokens that arrive in pieces. The states after every position are cached in the same way as keys and
// values. Each row therefore continues from its own last position.

CachedStates::CachedStates(Tape tape, const Var& past, const Vars& init) : tape_(tape), past_(past) {
  const std::int64_t rows = past.size(0), capacity = tape.capacity();
  // the last position of each row, counted over the positions of all rows
  const Var last = iota(tape, {rows}) * capacity + maximum(past - 1, 0);
  for (const Var& first : init) {
    if (first.rank() == 0 || first.shape()[0] != rows)
      throw ShapeError("scan: in mode predict a state must have a row for each of the " + std::to_string(rows) +
                       " rows of tokens, got " + to_string(first.type()));
    Shape shape = first.shape();
    shape.insert(1, capacity);
    const std::size_t number = tape.states().size() + held_.size();
    held_.push_back(tape.input("states " + std::to_string(number), shape, first.dtype()));
    shape.erase(0);
    shape[0] *= rows;
    Shape begun = Shape::filled(first.rank(), 1);
    begun[0] = rows;
    before_.push_back(where(reshape(past > 0, begun), take(reshape(held_.back(), shape), last), first));
  }
}

void CachedStates::hold(const Vars& states) {
  for (std::size_t j = 0; j < states.size(); ++j) {
    const Var held = apply(builtin_ops().at("cache"), {states[j], held_[j], past_}, {{"axis", std::int64_t{1}}})[0];
    tape_.add_state(held_[j], held);
  }
}

namespace {
/// Returns whether a node must be replaced by its expansion, so that its random numbers can be drawn for all steps at
/// once.
bool hides_draws(const Node& node) {
  return draws(node) && (!node.inputs.empty() || node.body);
}
/// Returns the var on the new tape for a value of the old tape.
using Now = std::function<Var(ValueId)>;

/// Records the body on a new tape. For each node, `instead` may record a replacement and return its outputs. If it
/// returns no outputs, the node is copied.
Tape rerecorded(const Tape& body, const std::function<Vars(Tape& next, std::int32_t index, const Now& now)>& instead) {
  Copier copier(body, body.blank());
  const Now now = [&](ValueId id) { return copier.to().var(copier.now(id)); };
  for (std::int32_t index = 0; index < static_cast<std::int32_t>(body.size()); ++index) {
    const auto in_site = copier.to().in_site(body.node(index).site);
    const Vars made = instead(copier.to(), index, now);
    if (made.empty()) copier.copy(index);
    for (std::size_t k = 0; k < made.size(); ++k)
      if (!made[k].empty()) copier.replace({index, static_cast<std::int32_t>(k)}, made[k].id());
  }
  std::vector<ValueId> results;
  for (const ValueId& id : body.results()) results.push_back(copier.now(id));
  copier.to().set_results(results);
  return copier.to();
}
}  // namespace

Tape with_draws_apart(const Tape& body) {
  Tape current = body;
  for (bool again = true; again;) {
    again = false;
    current = rerecorded(current, [&](Tape& next, std::int32_t index, const Now& now) {
      const Node& node = current.node(index);
      if (!hides_draws(node)) return Vars{};
      if (node.op->derivative.differs)
        throw Error("scan: the body of " + node.op->name +
                    " draws random numbers: draw them in the cell, outside of it");
      if (!node.op->expand)
        throw Error("scan: " + node.op->name +
                    " cannot draw its random numbers for all steps at once: use uniform in its place");
      again = true;
      Vars inputs;
      for (const ValueId& input : node.inputs) inputs.push_back(now(input));
      return expansion(node, next, inputs);
    });
  }
  return current;
}

Tape with_fused_calls(const Tape& body) {
  const Fusions fusions(ops_of(body), {body, std::vector<bool>(body.size(), true), body.results()});
  if (fusions.found().empty()) return body;
  return rerecorded(body, [&](Tape& next, std::int32_t index, const Now& now) {
    const Fusion* fusion = fusions.at(index);
    if (fusion == nullptr || fusion->rule->gradients_beforehand) return Vars{};
    const auto in_fused_call = next.in_fused_call();
    const Vars fused = record_fusion(*fusion, next, now);
    Vars outputs(body.node(index).outputs.size());
    for (const auto& [of_root, of_call] : fusion->outputs) outputs[of_root] = fused[of_call];
    return outputs;
  });
}

}  // namespace xtape
