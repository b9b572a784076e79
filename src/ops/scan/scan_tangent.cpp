// The tangent of a scan, which is a scan over the tangent of its body.
#include "ops/scan/scan.hpp"
#include "xtape/ops.hpp"

namespace xtape {

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
