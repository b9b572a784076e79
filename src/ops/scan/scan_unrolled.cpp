// The expansion of a scan, and the handling of values that a step leaves unchanged.
#include "ops/scan/scan.hpp"
#include "xtape/ops.hpp"

namespace xtape {

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
  const ScanForm form(call.attributes());
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
