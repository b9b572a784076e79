// ScanStep: records a scan from a step.
#include <algorithm>

#include "ops/linear_algebra/equation.hpp"
#include "ops/scan/scan.hpp"
#include "tape/graph.hpp"

namespace xtape {

namespace {
/// Returns whether the outputs of a node become further outputs of the scan, for the gradient. Outputs of views do not,
/// because the gradient records views again.
bool is_kept(const Node& node) {
  return !node.op->is_source() && !node.op->is_view() && !node.op->inputs.empty();
}
}  // namespace

ScanStep::ScanStep(Tape outer, Tape step, std::int64_t length, bool reverse, Segments segments)
    : outer_(outer), step_(step), length_(length), reverse_(reverse), segments_(std::move(segments)) {
  const auto whole = [&](std::int64_t steps) { return steps >= length_; };
  segments_.erase(std::remove_if(segments_.begin(), segments_.end(), whole), segments_.end());
}

void ScanStep::set_sequence(ValueId value, const Sequence& sequence) {
  if (outers_.count(value) == 0) sequences_.emplace(value, sequence);
}

void ScanStep::set_state(ValueId value, const Var& first) {
  states_.emplace_back(value, first);
}
void ScanStep::set_outer(ValueId value, const Var& var) {
  outers_.emplace(value, var);
}

const Sequence* ScanStep::sequence(ValueId value) const {
  const auto found = sequences_.find(value);
  return found == sequences_.end() ? nullptr : &found->second;
}

bool ScanStep::is_state(ValueId value) const {
  return std::any_of(states_.begin(), states_.end(), [&](const auto& state) { return state.first == value; });
}

bool ScanStep::varies(ValueId value) {
  if (outers_.count(value) != 0) return false;
  if (sequence(value) != nullptr || is_state(value)) return true;
  for (std::size_t i = varies_.size(); i <= static_cast<std::size_t>(value.node); ++i) {
    const Node& node = step_.node(i);
    if (node.op->random && !draws_) draws_.emplace(outer_);
    varies_.push_back((node.op->random && !draws_->repeats(node)) || (conditional() && !node.inputs.empty()));
    for (const ValueId& input : node.inputs)
      if (varies(input)) varies_[i] = true;
  }
  return varies_[value.node];
}

Var ScanStep::outer(ValueId value) {
  const auto found = outers_.find(value);
  if (found != outers_.end()) return found->second;
  Node node = step_.node(value.node);
  for (ValueId& input : node.inputs) input = outer(input).id();
  const auto count = static_cast<std::int32_t>(node.outputs.size());
  const std::int32_t placed = outer_.append(std::move(node)).node;
  for (std::int32_t k = 0; k < count; ++k) outers_.emplace(ValueId{value.node, k}, outer_.var({placed, k}));
  return outers_.at(value);
}

/// Records a random array for all steps at once on the outer tape.
Sequence ScanStep::drawn(const Node& node) {
  const auto in_site = outer_.in_site(node.site);
  return {with_first_axis(outer_, node, length_), 0};
}

/// Returns whether a node is the product of a slice and a value that does not vary, or looks up (take) a slice in such
/// a value.
bool ScanStep::is_projection(const Node& node) {
  if (node.op == &builtin_ops().at("take")) return sequence(node.inputs[1]) != nullptr && !varies(node.inputs[0]);
  if (node.op != &builtin_ops().at("einsum")) return false;
  const bool first = sequence(node.inputs[0]) != nullptr, second = sequence(node.inputs[1]) != nullptr;
  return first != second && !varies(node.inputs[first ? 1 : 0]);
}

/// Records a projection for all steps at once on the outer tape.
Sequence ScanStep::projected(const Node& node) {
  const auto in_site = outer_.in_site(node.site);
  std::int64_t axes[2] = {-1, -1};
  Vars operands;
  for (std::size_t i = 0; i < 2; ++i) {
    const Sequence* slices = sequence(node.inputs[i]);
    if (slices != nullptr) axes[i] = slices->axis;
    operands.push_back(slices != nullptr ? slices->var : outer(node.inputs[i]));
  }
  if (node.op == &builtin_ops().at("take")) {
    const auto axis =
        static_cast<std::int64_t>(normal_axis(node.attributes.get<std::int64_t>("axis"), operands[0].rank()));
    return {take(operands[0], operands[1], axis), axis + axes[1]};
  }
  return {einsum(with_axis(node.attributes.get<std::string>("equation"), axes[0], axes[1], 0), operands), 0};
}

/// Returns for each node of the step whether it belongs to the body. Records random arrays and projections on the outer
/// tape.
std::vector<bool> ScanStep::needed_nodes(const std::vector<ValueId>& results) {
  std::vector<bool> needed(step_.size(), false);
  const auto need = [&](ValueId id) {
    if (varies(id) && sequence(id) == nullptr && !is_state(id)) needed[id.node] = true;
  };
  for (const ValueId& id : results) need(id);
  for (std::size_t i = step_.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Node& node = step_.node(i);
    const bool is_drawn = node.op->random && node.inputs.empty();  // the node varies, so it repeats no draw
    // Random arrays are drawn for all segments, so that they do not depend on the segments. Projections are computed
    // only for the steps of one segment, because projections of all steps would take more memory. A scan without states
    // is a loop over blocks that should stay in the cache.
    const bool projects = segments_.empty() && !conditional() && !states_.empty();
    if (is_drawn || (projects && is_projection(node))) {
      set_sequence({static_cast<std::int32_t>(i), 0}, is_drawn ? drawn(node) : projected(node));
      needed[i] = false;
      continue;
    }
    for (const ValueId& input : node.inputs) need(input);
  }
  return needed;
}

ScanStep::Recorded ScanStep::record(const std::vector<Stacked>& stacked, const std::vector<ValueId>& next) {
  std::vector<ValueId> results;
  for (const Stacked& output : stacked) results.push_back(output.value);
  results.insert(results.end(), next.begin(), next.end());
  const std::vector<bool> needed = needed_nodes(results);

  std::vector<ValueId> used = results;  // values that the body reads
  if (conditional()) used.push_back(condition_);
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) used.insert(used.end(), step_.node(i).inputs.begin(), step_.node(i).inputs.end());
  ScanForm form;
  form.length = length_;
  form.reverse = reverse_;
  form.states = static_cast<std::int64_t>(states_.size());
  auto body = std::make_shared<Tape>(step_.blank());
  Vars inputs;  // the inputs of the scan
  Copier into_body(step_, *body);
  const auto enter = [&](ValueId id, const Var& from) {
    const ValueType type = step_.type(id);
    const Var input = body->input("in" + std::to_string(inputs.size()), type.shape, type.dtype);
    if (!into_body.known(id)) into_body.replace(id, input.id());
    inputs.push_back(from);
  };
  for (const ValueId& id : used) {
    const Sequence* slice_of = sequence(id);
    if (slice_of == nullptr || into_body.known(id)) continue;
    enter(id, slice_of->var);
    form.input_axes.push_back(slice_of->axis);
  }
  for (const auto& [id, first] : states_) enter(id, first);
  if (conditional()) form.condition = into_body.now(condition_).node;  // at this point, the body has only inputs
  std::unordered_map<ValueId, ValueId> captured;                       // outer var -> value of the body
  for (const ValueId& id : used) {
    if (into_body.known(id) || varies(id)) continue;
    if (is_number(step_.node(id.node))) {
      into_body.copy(id.node);
      continue;
    }
    const Var var = outer(id);
    const auto known = captured.find(var.id());
    if (known != captured.end()) {
      into_body.replace(id, known->second);
      continue;
    }
    enter(id, var);
    captured.emplace(var.id(), into_body.now(id));
  }
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) into_body.copy(static_cast<std::int32_t>(i));

  std::vector<ValueId> given;
  for (const Stacked& output : stacked) {
    given.push_back(into_body.now(output.value));
    form.output_axes.push_back(output.axis);
  }
  const auto offer = [&](ValueId id) {
    if (std::find(given.begin(), given.end(), id) != given.end()) return;
    given.push_back(id);
    form.output_axes.push_back(0);
  };
  // Scans of segments keep the values that their gradients read. If there are no inputs, there are no gradients.
  const bool keeps = segments_.empty() || inputs.empty();
  for (std::size_t i = 0; keeps && i < states_.size(); ++i) offer(into_body.now(states_[i].first));
  for (std::size_t i = 0; keeps && i < body->size(); ++i)
    for (std::size_t k = 0; is_kept(body->node(i)) && k < body->node(i).outputs.size(); ++k)
      offer({static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)});
  for (const ValueId& id : next) given.push_back(into_body.now(id));
  body->set_results(given);

  const Vars outputs = keeps ? record_call(outer_, scan_op(), inputs, form.attributes(), body)
                             : record_segments(outer_, *body, inputs, form, segments_);
  const auto at = [&](std::size_t i) { return outputs.begin() + static_cast<std::ptrdiff_t>(i); };
  return {Vars(at(0), at(stacked.size())), Vars(at(form.stacked()), outputs.end())};
}

}  // namespace xtape
