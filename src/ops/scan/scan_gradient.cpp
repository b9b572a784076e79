// The gradient of a scan. It is a scan in the opposite direction over the adjoint of the body. The gradients of weights
// and inputs do not feed the carried cotangents. The products that compute these gradients are therefore recorded after
// the scan, once for all steps. In a conditional scan, these gradients are added up step by step instead, because few
// steps may take place.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "ops/linear_algebra/equation.hpp"
#include "ops/scan/scan.hpp"

namespace xtape {

namespace {
const Op* op_named(const char* name) {
  return &builtin_ops().at(name);
}

/// The gradients of the scan's sequences and non-sequences. Decides which of their ops are computed in the step, and
/// which after the scan. Usage: call ask_… for all of them, then record the scan, then call take_….
class OutgoingGradients {
 public:
  explicit OutgoingGradients(ScanStep& step) : step_(step) {}

  /// Requests the sum of a value over all steps.
  void ask_sum(ValueId value) {
    if (step_.conditional()) return accumulate(value);
    if (!step_.varies(value)) return;
    switch (form_of(value)) {
      case Form::sequence:
        return;
      case Form::product:
        if (is_small_sum(node_of(value))) return accumulate(value);
        [[fallthrough]];
      case Form::sum:
        for (const ValueId& input : node_of(value).inputs) ask_steps(input);
        return;
      case Form::addition:
      case Form::linear:
        for (const ValueId& input : node_of(value).inputs) ask_sum(input);
        return;
      case Form::other:
        accumulate(value);
    }
  }
  Var take_sum(ValueId value, const ScanStep::Recorded& recorded) {
    if (step_.conditional()) return accumulated(value, recorded);
    if (!step_.varies(value)) return step_.outer(value) * static_cast<double>(step_.length());
    const Node node = node_of(value);
    switch (form_of(value)) {
      case Form::sequence: {
        const Sequence sequence = *step_.sequence(value);
        return sum(sequence.var, {sequence.axis});
      }
      case Form::product:
        return is_small_sum(node) ? accumulated(value, recorded) : product(node, recorded, -1);
      case Form::sum:
        return sum_over_steps(node, recorded);
      case Form::addition:
        return take_sum(node.inputs[0], recorded) + take_sum(node.inputs[1], recorded);
      case Form::linear:
        return record_call(step_.outer_tape(), *node.op, {take_sum(node.inputs[0], recorded)}, node.attributes)[0];
      default:
        return accumulated(value, recorded);
    }
  }

  /// Requests a value at all steps, stacked along `axis`.
  void ask_stacked(ValueId value, std::int64_t axis) {
    if (!computed_after(value)) {
      emit(value, axis);
    } else if (form_of(value) == Form::product) {
      for (const ValueId& input : node_of(value).inputs) ask_steps(input);
    } else {
      for (const ValueId& input : node_of(value).inputs) ask_stacked(input, axis);
    }
  }
  Var take_stacked(ValueId value, std::int64_t axis, const ScanStep::Recorded& recorded) {
    if (!computed_after(value)) return recorded.stacked[emitted_.at({value, axis})];
    const Node node = node_of(value);
    if (form_of(value) == Form::product) return product(node, recorded, axis);
    return take_stacked(node.inputs[0], axis, recorded) + take_stacked(node.inputs[1], axis, recorded);
  }

  /// Returns the stacked outputs that the scan must have. In addition, the scan must carry the accumulators as states.
  const std::vector<ScanStep::Stacked>& outputs() const { return outputs_; }
  void add_accumulators(std::vector<ValueId>& next) {
    first_sum_ = next.size();
    next.insert(next.end(), sums_.begin(), sums_.end());
  }

 private:
  /// The ways to compute a value: a slice of a sequence; an einsum; a sum; an addition of equal types; neg or a view;
  /// anything else.
  enum class Form { sequence, product, sum, addition, linear, other };

  const Node& node_of(ValueId value) const { return step_.tape().node(value.node); }

  Form form_of(ValueId value) const {
    if (step_.sequence(value) != nullptr) return Form::sequence;
    if (step_.is_state(value)) return Form::other;
    const Node& node = node_of(value);
    if (node.op == op_named("einsum")) return Form::product;
    if (node.op == op_named("sum")) return Form::sum;
    if (node.op == op_named("neg") || (node.op->is_view() && node.inputs.size() == 1)) return Form::linear;
    const auto whole = [&](ValueId input) { return step_.tape().type(input) == node.outputs[0]; };
    const bool adds = node.op == op_named("add") && std::all_of(node.inputs.begin(), node.inputs.end(), whole);
    return adds ? Form::addition : Form::other;
  }

  /// Returns whether the stacked value is computed after the scan. This applies to products, and to additions of
  /// products.
  bool computed_after(ValueId value) {
    if (step_.conditional() || !step_.varies(value)) return false;
    const Form form = form_of(value);
    if (form != Form::addition) return form == Form::product;
    const Node& node = node_of(value);
    return computed_after(node.inputs[0]) && computed_after(node.inputs[1]);
  }

  /// Returns whether a product is much smaller than a slice of a sequence that it reads. Such a product is added up
  /// step by step. The step reads the slice anyway, while a product after the scan would have to read the whole
  /// sequence once more.
  bool is_small_sum(const Node& product) const {
    constexpr std::int64_t much = 8;
    return std::any_of(product.inputs.begin(), product.inputs.end(), [&](const ValueId& input) {
      return step_.sequence(input) != nullptr &&
             count_of(step_.tape().type(input).shape) / much >= count_of(product.outputs[0].shape);
    });
  }

  /// Requests an operand of an op that is computed after the scan.
  void ask_steps(ValueId value) {
    const bool is_new = step_.varies(value) && step_.sequence(value) == nullptr && !emitted(value);
    if (is_new) emit(value, 0);
  }
  Sequence steps(ValueId value, const ScanStep::Recorded& recorded) {
    if (const Sequence* sequence = step_.sequence(value)) return *sequence;
    return {recorded.stacked[*emitted(value)], outputs_[*emitted(value)].axis};
  }
  /// Returns the first output that contains a value, along any axis, or nothing if there is none.
  std::optional<std::size_t> emitted(ValueId value) const {
    const auto found =
        std::find_if(outputs_.begin(), outputs_.end(), [&](const auto& each) { return each.value == value; });
    if (found == outputs_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - outputs_.begin());
  }

  /// Makes a value a stacked output of the scan.
  void emit(ValueId value, std::int64_t axis) {
    if (emitted_.emplace(std::make_pair(value, axis), outputs_.size()).second) outputs_.push_back({value, axis});
  }

  /// Adds a state that sums a value over the steps.
  void accumulate(ValueId value) {
    if (!accumulators_.emplace(value, sums_.size()).second) return;
    const ValueType type = step_.tape().type(value);
    Tape tape = step_.tape();
    const Var before = tape.input("sum" + std::to_string(sums_.size()), type.shape, type.dtype);
    step_.set_state(before.id(), zeros(step_.outer_tape(), type.shape, type.dtype));
    sums_.push_back(add(before, tape.var(value)).id());
  }

  Var accumulated(ValueId value, const ScanStep::Recorded& recorded) const {
    return recorded.states[first_sum_ + accumulators_.at(value)];
  }

  /// Returns an einsum over all steps at once. The steps are axis `result_axis` of the result. -1 sums over the steps.
  Var product(const Node& node, const ScanStep::Recorded& recorded, std::int64_t result_axis) {
    std::int64_t axes[2] = {-1, -1};
    Vars operands;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!step_.varies(node.inputs[i])) {
        operands.push_back(step_.outer(node.inputs[i]));
        continue;
      }
      const Sequence sequence = steps(node.inputs[i], recorded);
      axes[i] = sequence.axis;
      operands.push_back(sequence.var);
    }
    return einsum(with_axis(node.attributes.get<std::string>("equation"), axes[0], axes[1], result_axis), operands);
  }

  /// Returns a sum over the axes of the node and over the steps.
  Var sum_over_steps(const Node& node, const ScanStep::Recorded& recorded) {
    const Sequence sequence = steps(node.inputs[0], recorded);
    const std::size_t rank = sequence.var.rank() - 1;
    Axes axes = node.attributes.get<std::vector<std::int64_t>>("axis");
    if (axes.empty())
      for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
    for (std::int64_t& axis : axes) {
      axis = static_cast<std::int64_t>(normal_axis(axis, rank));
      if (axis >= sequence.axis) ++axis;
    }
    axes.push_back(sequence.axis);
    const Var total = sum(sequence.var, axes);
    return node.attributes.get<bool>("keepdims") ? reshape(total, node.outputs[0].shape) : total;
  }

  ScanStep& step_;
  std::vector<ScanStep::Stacked> outputs_;
  std::map<std::pair<ValueId, std::int64_t>, std::size_t> emitted_;  // (value, axis) -> index in `outputs_`
  std::vector<ValueId> sums_;                                        // the values of the accumulators after a step
  std::unordered_map<ValueId, std::size_t> accumulators_;            // value -> index in `sums_`
  std::size_t first_sum_ = 0;  // the index of the first accumulator among the states
};
}  // namespace

Vars scan_gradient(const GradientCall& call) {
  const ScanForm form(call.attributes);
  RecordedBody again(call.inputs[0].tape(), call.node, call.inputs, call.outputs, !form.reverse);
  ScanStep& step = again.step;
  Tape& tape = again.tape;
  const Vars &inputs = again.inputs, &results = again.results;
  const std::size_t first_state = again.first_state, first_non_sequence = again.first_non_sequence;

  Vars reached, cotangents;
  const auto reach = [&](std::size_t k) {
    const ValueType type = results[k].type();
    reached.push_back(results[k]);
    cotangents.push_back(tape.input("d" + std::to_string(k), type.shape, type.dtype));
    return cotangents.back().id();
  };
  for (std::size_t k = 0; k < form.stacked(); ++k)
    if (!call.cotangents[k].empty()) step.set_sequence(reach(k), {call.cotangents[k], form.output_axes[k]});
  for (std::size_t k = form.stacked(); k < results.size(); ++k)
    if (is_floating(results[k].dtype())) step.set_state(reach(k), call.cotangent(k));

  Vars wanted;
  const auto is_wanted = [&](std::size_t k) {
    const bool state = k >= first_state && k < first_non_sequence;
    return state ? is_floating(inputs[k].dtype()) : call.needs[k];
  };
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (is_wanted(k)) wanted.push_back(inputs[k]);
  Vars found;
  if (!wanted.empty()) found = call.grad(reached, wanted, cotangents);

  std::vector<ValueId> next;
  OutgoingGradients leaving(step);
  std::vector<ValueId> gradient(inputs.size());
  for (std::size_t k = 0, i = 0; k < inputs.size(); ++k) {
    if (!is_wanted(k)) continue;
    gradient[k] = found[i++].id();
    if (k < first_state) leaving.ask_stacked(gradient[k], form.input_axes[k]);
    if (k >= first_state && k < first_non_sequence) next.push_back(gradient[k]);
    if (k >= first_non_sequence) leaving.ask_sum(gradient[k]);
  }
  leaving.add_accumulators(next);
  const ScanStep::Recorded recorded = step.record(leaving.outputs(), next);

  Vars gradients(inputs.size());
  for (std::size_t k = 0, state = 0; k < inputs.size(); ++k) {
    if (k >= first_state && k < first_non_sequence && is_floating(inputs[k].dtype())) {
      if (call.needs[k]) gradients[k] = recorded.states[state];
      ++state;
    } else if (call.needs[k]) {
      gradients[k] = k < first_state ? leaving.take_stacked(gradient[k], form.input_axes[k], recorded)
                                     : leaving.take_sum(gradient[k], recorded);
    }
  }
  return gradients;
}

}  // namespace xtape
