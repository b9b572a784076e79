// The batch and the tangent of a scan: scans over the batched body, and over the tangent of the body.
#include "ops/scan/scan.hpp"

namespace xtape {

namespace {
/// Records a conditional scan whose condition differs between examples. A step takes place if the condition of any
/// example is true. The step leaves the states of all other examples unchanged. `body` is the batched body.
Vars batch_conditional(const ScanForm& form, const Tape& outer, const Tape& body, const Vars& given,
                       const std::vector<bool>& mapped) {
  const std::size_t first_state = form.sequences(), condition = static_cast<std::size_t>(form.condition);
  const std::size_t first_non_sequence = first_state + static_cast<std::size_t>(form.states);
  Tape tape = outer.blank();
  ScanStep step(outer, tape, form.length, form.reverse);
  Vars inputs;
  const std::vector<ValueId> ids = body.inputs();
  for (std::size_t k = 0; k < ids.size(); ++k) {
    inputs.push_back(tape.input("in" + std::to_string(k), body.type(ids[k]).shape, body.type(ids[k]).dtype));
    const ValueId id = inputs.back().id();
    if (k < first_state)
      step.set_sequence(id, {given[k], form.input_axes[k]});
    else if (k < first_non_sequence)
      step.set_state(id, given[k]);
    else
      step.set_outer(id, given[k]);
  }
  const Var takes_place = inputs[condition];
  const Var takes_any = tape.input("any", {}, Dtype::boolean);
  if (condition < first_state)
    step.set_sequence(takes_any.id(), {any(given[condition], {0}), 0});
  else
    step.set_state(takes_any.id(), any(given[condition]));
  step.set_condition(takes_any.id());

  // Examples whose condition is false are computed together with the others. No gradient flows back to their inputs,
  // because the derivative of a step that does not take place may be infinite.
  Vars entered = inputs;
  for (std::size_t k = 0; k < entered.size(); ++k) {
    if (!mapped[k] || !is_floating(entered[k].dtype())) continue;
    Vars chosen{entered[k]};
    Vars none;
    keep_where_false(takes_place, {stop_gradient(entered[k])}, none, chosen);
    entered[k] = chosen[0];
  }
  Vars outputs = inline_body(tape, body, entered);
  Vars next(outputs.begin() + static_cast<std::ptrdiff_t>(form.stacked()), outputs.end());
  outputs.resize(form.stacked());
  const Vars states(inputs.begin() + static_cast<std::ptrdiff_t>(first_state),
                    inputs.begin() + static_cast<std::ptrdiff_t>(first_non_sequence));
  keep_where_false(takes_place, states, outputs, next);

  std::vector<ScanStep::Stacked> stacked;
  for (std::size_t k = 0; k < outputs.size(); ++k) stacked.push_back({outputs[k].id(), form.output_axes[k]});
  std::vector<ValueId> carried;
  for (const Var& state : next) carried.push_back(state.id());
  if (condition >= first_state) carried.push_back(any(next[condition - first_state]).id());
  const ScanStep::Recorded recorded = step.record(stacked, carried);
  Vars results = recorded.stacked;
  results.insert(results.end(), recorded.states.begin(), recorded.states.begin() + form.states);
  return results;
}
}  // namespace

/// All states are mapped, because a state that begins equal for all examples may change for each of them.
Vars scan_batch(const BatchCall& call) {
  ScanForm form(call.attributes);
  std::vector<bool> mapped = call.mapped;
  Vars inputs = call.inputs;
  for (std::size_t k = 0; k < form.sequences(); ++k) form.input_axes[k] += mapped[k] ? 1 : 0;
  for (std::size_t k = form.sequences(), end = k + static_cast<std::size_t>(form.states); k < end; ++k) {
    inputs[k] = call.whole(k);
    mapped[k] = true;
  }
  for (std::int64_t& axis : form.output_axes) ++axis;
  const auto body = std::make_shared<Tape>(call.body(*call.node.body, mapped));
  if (form.condition >= 0 && mapped[static_cast<std::size_t>(form.condition)])
    return batch_conditional(form, call.tape, *body, inputs, mapped);
  return record_call(call.tape, call.op, inputs, form.attributes(), body);
}

Vars scan_tangent(const TangentCall& call) {
  const ScanForm form(call.node.attributes);
  const Tape outer = call.inputs[0].tape();
  RecordedBody again(outer, call.node, call.inputs, call.outputs, form.reverse);
  ScanStep& step = again.step;
  Vars varying, tangents;
  for (std::size_t k = 0; k < again.inputs.size(); ++k) {
    const Var& x = again.inputs[k];
    const bool is_state = k >= again.first_state && k < again.first_non_sequence;
    if (is_state ? !is_floating(x.dtype()) : call.tangents[k].empty()) continue;
    varying.push_back(x);
    tangents.push_back(again.tape.input("t" + std::to_string(k), x.shape(), x.dtype()));
    const ValueId id = tangents.back().id();
    if (k < again.first_state)
      step.set_sequence(id, {call.tangents[k], form.input_axes[k]});
    else if (is_state)
      step.set_state(id, call.tangents[k].empty() ? zeros_like(call.inputs[k]) : call.tangents[k]);
    else
      step.set_outer(id, call.tangents[k]);
  }
  Vars asked;
  std::vector<std::size_t> places;  // the index of each asked result among the outputs
  for (std::size_t k = 0; k < again.results.size(); ++k) {
    if (k < form.stacked() ? !call.needs[k] : !is_floating(again.results[k].dtype())) continue;
    asked.push_back(again.results[k]);
    places.push_back(k);
  }
  const Vars found = call.jvp(asked, varying, tangents);
  std::vector<ScanStep::Stacked> stacked;
  std::vector<ValueId> next;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (places[i] < form.stacked())
      stacked.push_back({found[i].id(), form.output_axes[places[i]]});
    else
      next.push_back(found[i].id());
  }
  const ScanStep::Recorded recorded = step.record(stacked, next);
  Vars outputs(call.outputs.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    outputs[places[i]] = i < stacked.size() ? recorded.stacked[i] : recorded.states[i - stacked.size()];
  return outputs;
}

}  // namespace xtape
