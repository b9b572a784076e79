// scan: applies a body that computes one step along an axis. States are carried from step to step.
#include "xtape/scan.hpp"

#include <algorithm>

#include "ops/scan/scan.hpp"
#include "tape/calls.hpp"

namespace xtape {

// The node ------------------------------------------------------------------------------------------------------------

ScanForm::ScanForm(const Attributes& attributes)
    : Stepping{attributes.get<std::vector<std::int64_t>>("input_axes"),
               attributes.get<std::vector<std::int64_t>>("output_axes"),
               attributes.get<std::int64_t>("states"),
               attributes.get<std::int64_t>("length"),
               attributes.get<bool>("reverse"),
               attributes.get<std::int64_t>("condition")} {}

Attributes ScanForm::attributes() const {
  return {{"input_axes", input_axes}, {"output_axes", output_axes}, {"states", states},
          {"length", length},         {"reverse", reverse},         {"condition", condition}};
}

namespace {
/// Returns the types of the outputs. Checks that sequences, states and body fit together, because kernels rely on it.
std::vector<ValueType> scan_types(const OpCall& call) {
  if (call.body == nullptr) throw Error("needs a body: record it with xtape::scan(cell, inputs, init)");
  const ScanForm form(call.attributes);
  const std::vector<ValueId> given = call.body->inputs();
  std::vector<ValueType> types;
  for (const ValueId& id : call.body->results()) types.push_back(call.body->type(id));
  const auto states = static_cast<std::size_t>(std::max<std::int64_t>(form.states, 0));
  if (form.length < 0 || form.states < 0 || given.size() != call.inputs.size() || states > given.size() ||
      form.sequences() > given.size() - states || states > types.size() || form.stacked() != types.size() - states)
    throw ShapeError("its body does not have the inputs and results that its attributes and operands say");
  for (std::size_t k = 0; k < given.size(); ++k) {
    ValueType step = call.inputs[k];
    if (k < form.sequences()) {
      const std::size_t axis = normal_axis(form.input_axes[k], step.shape.size());
      if (form.input_axes[k] < 0 || step.shape[axis] != form.length)
        throw ShapeError("sequence " + to_string(step) + " must have " + std::to_string(form.length) +
                         " steps along axis " + std::to_string(form.input_axes[k]));
      step.shape.erase(axis);
    }
    const bool is_state = k >= form.sequences() && k - form.sequences() < states;
    if (call.body->type(given[k]) != step || (is_state && types[form.stacked() + k - form.sequences()] != step))
      throw ShapeError("its body takes or gives another type than " + to_string(step) + " for operand " +
                       std::to_string(k));
  }
  if (form.condition >= 0) {
    const auto place = static_cast<std::size_t>(form.condition);
    if (place >= form.sequences() + states || call.body->type(given[place]) != ValueType{Dtype::boolean, {}})
      throw ShapeError("its condition must be a sequence or a state, of one bool per step");
  }
  for (std::size_t k = 0; k < form.stacked(); ++k)
    types[k].shape.insert(static_cast<std::size_t>(form.output_axes[k]), form.length);
  return types;
}
}  // namespace

const Op& scan_op() {
  static const Op entry{
      .name = "scan",
      .doc = R"(Applies a body along an axis. Step i computes (outputs_i, states_i) from slice i of each sequence,
           states_(i-1), and inputs that are the same at every step. The inputs are the sequences, the initial states
           and the inputs that stay the same; the outputs are the stacked outputs and the final states.)",
      .inputs = {{"xs", Accept::any, Arity::many}},
      .outputs = {"ys"},
      .attributes =
          {{"input_axes", AttributeType::integers, "The axis of the steps in each sequence.", std::nullopt},
           {"output_axes", AttributeType::integers, "The axis of the steps in each stacked output.", std::nullopt},
           {"states", AttributeType::integer, "The number of states.", std::nullopt},
           {"length", AttributeType::integer, "The number of steps.", std::nullopt},
           {"reverse", AttributeType::boolean, "If true, the last step comes first.", std::nullopt},
           {"condition", AttributeType::integer,
            "The input of the body, a slice of a sequence or a state, that determines whether a step takes place. If a "
            "step does not take place, the states stay and the outputs are zeros. -1 means that all steps take place.",
            std::int64_t{-1}}},
      .shape = scan_types,
      .gradient = scan_gradient,
      .batch = scan_batch,
      .expand = scan_unrolled,
      .lowering = {.body = {.steps = +[](const OpCall& call) { return Stepping(ScanForm(call.attributes)); },
                            .attributes = +[](const Stepping& steps) { return ScanForm(steps).attributes(); }},
                   .layouts = {.any_in = true, .any_out = true}},
      .derivative = {.tangent = scan_tangent}};
  return entry;
}

// Recording -----------------------------------------------------------------------------------------------------------

namespace {
/// Returns the number of steps: the common size of the inputs along the axis. Throws ShapeError if the sizes differ.
std::int64_t length_of(const Vars& inputs, std::int64_t axis) {
  const auto size = [&](std::size_t k) {
    if (axis >= static_cast<std::int64_t>(inputs[k].rank()))
      throw ShapeError("scan: input " + std::to_string(k) + " is " + to_string(inputs[k].type()) +
                       ", which has no axis " + std::to_string(axis) + " to scan along");
    return inputs[k].shape()[axis];
  };
  for (std::size_t k = 1; k < inputs.size(); ++k)
    if (size(k) != size(0))
      throw ShapeError("scan: the inputs must be equally long along axis " + std::to_string(axis) + ", got " +
                       to_string(inputs[0].type()) + " and " + to_string(inputs[k].type()));
  return size(0);
}

/// Throws if the next states do not have the number and types of the states.
void check_next(const Vars& next, const Vars& states) {
  if (next.size() != states.size())
    throw Error("scan: the cell must return one next state for each of the " + std::to_string(states.size()) +
                " states, it returned " + std::to_string(next.size()));
  for (std::size_t j = 0; j < next.size(); ++j)
    if (next[j].type() != states[j].type())
      throw ShapeError("scan: next state " + std::to_string(j) + " must be " + to_string(states[j].type()) +
                       " like the state, the cell returned " + to_string(next[j].type()));
}

}  // namespace

Scanned record_scan(Tape tape, const ScanFunction& cell, const Vars& inputs, const Vars& init,
                    const ScanOptions& options, const ScanKind& kind) {
  const std::size_t size = tape.size();
  const auto rank = inputs.empty() ? 0 : static_cast<std::int64_t>(inputs[0].rank());
  if (!inputs.empty() && (options.axis < -rank || options.axis >= rank))
    throw ShapeError("scan: its axis " + std::to_string(options.axis) +
                     ", along which it takes steps, is out of range for an input of shape " +
                     to_string(inputs[0].shape()) + ": set ScanOptions::axis");
  const auto axis =
      inputs.empty() ? options.axis : static_cast<std::int64_t>(normal_axis(options.axis, inputs[0].rank()));
  Vars sequences = inputs;
  if (!options.valid.empty()) sequences.push_back(options.valid);
  if (!options.valid.empty() && options.valid.dtype() != Dtype::boolean)
    throw DtypeError("scan: 'valid' must be bool, got " + to_string(options.valid.type()));
  for (const std::int64_t steps : options.checkpoint_every)
    if (steps < 1)
      throw Error("scan: 'checkpoint_every' must be a number of steps, at least 1, got " + std::to_string(steps) +
                  "; leave it empty to keep the values of all steps");
  const std::int64_t length = sequences.empty() ? kind.length : length_of(sequences, axis);

  Vars slices, states;
  for (const Var& x : sequences) slices.push_back(record_call(tape, step_slice_op(), {x}, {{"axis", axis}})[0]);
  for (const Var& first : init) states.push_back(record_call(tape, step_state_op(), {first}, {})[0]);
  const std::size_t caches = tape.states().size();
  const auto call_cell = [&] {
    // the nodes of the cell get the source locations of the cell's own calls
    const auto out_of_call = tape.out_of_call();
    return cell(Vars(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(inputs.size())), states);
  };
  auto [outputs, next] = call_cell();
  if (tape.states().size() != caches)
    throw Error(std::string(kind.name) + ": a cell cannot call cache: values that it carries must be its states");
  for (const Vars* vars : {&outputs, &next})
    for (const Var& var : *vars)
      if (var.tape() != tape) throw HandleError(std::string(kind.name) + ": the cell returned a var of another tape");
  check_next(next, states);
  if (outputs.empty() && next.empty()) throw Error("scan: the cell returns neither an output nor a state");
  for (const Var& output : outputs)
    if (static_cast<std::int64_t>(output.rank()) < axis)
      throw ShapeError("scan: an output of shape " + to_string(output.shape()) + " cannot be stacked along axis " +
                       std::to_string(axis));
  if (!options.valid.empty()) keep_where_false(slices.back(), states, outputs, next);
  if (kind.stacks_states) outputs.insert(outputs.end(), next.begin(), next.end());

  Vars results = outputs;
  results.insert(results.end(), next.begin(), next.end());
  ScanForm form;
  form.length = length;
  form.reverse = options.reverse;
  form.states = static_cast<std::int64_t>(next.size());
  form.output_axes.assign(outputs.size(), axis);
  // A tape with caches only predicts, so it keeps nothing for a gradient.
  const ScanStep::Recorded recorded = record_step(
      tape, size, results, form, tape.capacity() > 0 ? Segments() : options.checkpoint_every, kind.conditional);
  return {recorded.stacked, recorded.states};
}

namespace {
/// Records a scan over tokens that have a past. Each row continues from its cached states.
Scanned scan_on(Tape tape, const Var& past, const ScanFunction& cell, const Vars& inputs, const Vars& init,
                const ScanOptions& options) {
  if (options.reverse || normal_axis(options.axis, inputs[0].rank()) != 1)
    throw Error("scan: in mode predict tokens must be scanned along axis 1 and not in reverse");
  CachedStates states(tape, past, init);
  Scanned result = record_scan(tape, cell, inputs, states.before(), options, {.stacks_states = true});
  const auto first_state = result.outputs.end() - static_cast<std::ptrdiff_t>(init.size());
  states.hold(Vars(first_state, result.outputs.end()));
  result.outputs.erase(first_state, result.outputs.end());
  return result;
}
}  // namespace

Scanned scan(const ScanFunction& cell, const Vars& inputs, const Vars& init, const ScanOptions& options,
             Caller caller) {
  at_place(caller, [&] {
    if (!cell) throw Error("scan: the cell is empty");
    if (inputs.empty()) throw Error("scan: needs at least one input, whose size along the axis is the number of steps");
  });
  Tape tape = inputs[0].tape();
  const auto check = [&](const Var& var) {
    if (var.tape() != tape) throw HandleError("scan: its inputs and states belong to different tapes");
  };
  return all_or_nothing(tape, &scan_op(), caller, [&] {
    for (const Var& input : inputs) check(input);
    for (const Var& first : init) check(first);
    if (!options.valid.empty()) check(options.valid);
    Var past;
    for (const Var& input : inputs)
      if (past.empty()) past = tape.past_of(input);
    return past.empty() ? record_scan(tape, cell, inputs, init, options, {})
                        : scan_on(tape, past, cell, inputs, init, options);
  });
}

// The expansion of a scan, and the handling of values that a step leaves unchanged.

namespace {
/// Returns the mask of one step, reshaped to the rank of `x` with axes of size 1. Throws ShapeError if its sizes are
/// not the first sizes of `x`.
Var mask_for(const Var& mask, const Var& x, const char* what) {
  Shape shape = mask.shape();
  bool fits = shape.size() <= x.rank();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == x.shape()[i];
  if (!fits)
    throw ShapeError("scan: at each step 'valid' has shape " + to_string(shape) + ", which does not fit " + what +
                     " of shape " + to_string(x.shape()) + ": its sizes must be the first sizes of that");
  while (shape.size() < x.rank()) shape.push_back(1);
  return reshape(mask, shape);
}
}  // namespace

void keep_where_false(const Var& mask, const Vars& states, Vars& outputs, Vars& next) {
  for (Var& output : outputs) {
    const Var all = mask_for(mask, output, "an output");
    output = output.dtype() == Dtype::boolean ? output & all : cast(where(all, output, 0), output.dtype());
  }
  for (std::size_t j = 0; j < next.size(); ++j)  // where() widens int8
    next[j] = cast(where(mask_for(mask, next[j], "a state"), next[j], states[j]), states[j].dtype());
}

Vars scan_unrolled(const ExpandCall& call) {
  const ScanForm form(call.attributes);
  const Tape& body = *call.node.body;
  constexpr std::int64_t most_steps = 1 << 20;
  if (form.length > most_steps)
    throw Error("scan: " + std::to_string(form.length) + " steps are too many to record separately, at most " +
                std::to_string(most_steps) + " are allowed: play it as a scan");
  const auto first_state = call.inputs.begin() + static_cast<std::ptrdiff_t>(form.sequences());
  const auto first_non_sequence = first_state + static_cast<std::ptrdiff_t>(form.states);
  Vars states(first_state, first_non_sequence);
  std::vector<Vars> columns(form.stacked(), Vars(static_cast<std::size_t>(form.length)));
  for (std::int64_t i = 0; i < form.length; ++i) {
    const std::int64_t place = form.reverse ? form.length - 1 - i : i;
    Vars inputs;
    for (std::size_t k = 0; k < form.sequences(); ++k) {
      const auto axis = static_cast<std::size_t>(form.input_axes[k]);
      std::vector<std::int64_t> start(axis, 0), stop(axis, open_end);
      start.push_back(place);
      stop.push_back(place + 1);
      inputs.push_back(squeeze(slice(call.inputs[k], start, stop), {form.input_axes[k]}));
    }
    inputs.insert(inputs.end(), states.begin(), states.end());
    inputs.insert(inputs.end(), first_non_sequence, call.inputs.end());
    Vars outputs = inline_body(call.tape, body, inputs);
    const auto first_next = outputs.begin() + static_cast<std::ptrdiff_t>(columns.size());
    Vars next(first_next, outputs.end());
    outputs.erase(first_next, outputs.end());
    if (form.condition >= 0) keep_where_false(inputs[static_cast<std::size_t>(form.condition)], states, outputs, next);
    for (std::size_t k = 0; k < columns.size(); ++k) columns[k][static_cast<std::size_t>(place)] = outputs[k];
    states = next;
  }
  Vars outputs;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const ValueType& type = call.node.outputs[k];
    outputs.push_back(form.length > 0 ? stack(columns[k], form.output_axes[k])
                                      : zeros(call.tape, type.shape, type.dtype));
  }
  outputs.insert(outputs.end(), states.begin(), states.end());
  return outputs;
}

}  // namespace xtape
