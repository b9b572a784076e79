// Plays a computation together with a shadow in float64. Measures the error that each node makes and the error that it
// inherits. Both computations are on one tape, so the player plans their memory together and a single play computes all
// errors.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "inspect/node_by_node.hpp"
#include "tape/graph.hpp"
#include "xtape/inspect.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
Var as_float64(const Var& var) {
  return is_floating(var.dtype()) || is_block(var.dtype()) ? cast(var, Dtype::float64) : var;
}

/// Records the nodes of a play, each with its shadow.
class Shadow {
 public:
  Shadow(const RecordedPlay& play, const Store& rounded)
      : plays_(play),
        program_(with_open_bodies(plays_.program())),
        users_(program_),
        rounded_(rounded),
        tape_(program_.tape.blank()),
        values_(program_.tape, Var()),
        errors_(program_.tape, Var()),
        output_of_(program_.tape, -1) {
    for (std::size_t i = program_.outputs.size(); i-- > 0;)
      output_of_[program_.outputs[i]] = static_cast<std::int64_t>(i);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(program_.tape.size()); ++i)
      if (program_.node(i).op->is_source())
        add_source(i);
      else
        add_call(i);
  }

  std::vector<NodeError> play(const PlayerOptions& like, std::uint64_t step) const {
    std::optional<Player> player;
    Vars measures;
    for (const Measured& each : measured_)
      if (!each.measure.empty()) measures.push_back(each.measure);
    if (!measures.empty()) {
      player.emplace(tape_, measures, options_like(like));
      std::vector<Feed> feeds;
      for (const auto& [input, array] : inputs_) feeds.emplace_back(input, array);
      player->play(feeds, step);
    }
    std::vector<NodeError> errors;
    ValueTable<NodeError> known(program_.tape, {});
    for (const Measured& each : measured_) {
      NodeError error = described(each.id);
      for (const ValueId operand : program_.node(each.id.node).inputs) {
        error.of_operands = std::max(error.of_operands, known[operand].total);
        const bool is_view = program_.node(each.id.node).op->is_view();
        error.operand_rms = std::max(error.operand_rms, is_view ? known[operand].operand_rms : known[operand].rms);
      }
      if (!each.measure.empty()) fill(error, player->view(each.measure));
      known[each.id] = error;
      add(std::move(error), each.id, errors);
    }
    return errors;
  }

 private:
  /// Adds an error to the list. For a call inside a scan, the list contains only the step that adds the largest error.
  void add(NodeError error, ValueId id, std::vector<NodeError>& errors) const {
    const Node& node = program_.node(id.node);
    const std::int32_t region = program_.regions[id.node];
    if (region == 0 || !is_inside(id)) return errors.push_back(std::move(error));
    error.node += ": " + node.op->name;
    if (error.output >= 0) return errors.push_back(std::move(error));
    const auto [found, is_new] = first_step_.try_emplace({region, node.op, node.site.key, id.output}, errors.size());
    if (is_new) {
      error.time_step = 0;
      error.time_steps = 1;
      return errors.push_back(std::move(error));
    }
    NodeError& worst = errors[found->second];
    error.time_step = worst.time_steps;
    error.time_steps = worst.time_steps + 1;
    error.flipped += worst.flipped;
    error.overflows += worst.overflows;
    if (error.added() > worst.added()) return std::swap(worst, error);
    worst.time_steps = error.time_steps;
    worst.flipped = error.flipped;
    worst.overflows = error.overflows;
  }

  /// Returns whether the value comes from a body. Its origin is then a call of another op.
  bool is_inside(ValueId id) const { return program_.origins[id].op != program_.node(id.node).op; }

  static PlayerOptions options_like(const PlayerOptions& like) {
    PlayerOptions options;
    options.threads = like.threads;
    options.seed = like.seed;
    options.precision = like.precision;
    options.bits = like.bits;
    options.passes = like.passes;
    options.passes.common = false;  // otherwise one cast would serve all readers of a value and stay in memory long
    return options;
  }

  static void fill(NodeError& error, const ArrayView& measure) {
    if (measure.dtype() == Dtype::int64) {
      error.flipped = *measure.as<std::int64_t>();
      return;
    }
    const RoundingSquares squares = sum_of(measure);
    const auto relative = [&](double sum) { return sum == 0 ? 0 : std::sqrt(sum / squares.values); };  // x / 0 = inf
    error.made = relative(squares.made);
    error.inherited = relative(squares.inherited);
    error.total = relative(squares.total);
    error.overflows = static_cast<std::int64_t>(squares.overflows);
    error.rms = std::sqrt(squares.values / std::max<double>(1, static_cast<double>(error.elements)));
  }

  /// A value and its measurement: the squares of its error or, if its dtype is not floating, the number of elements
  /// that differ from the play in float64. `measure` is empty if the value is exact.
  struct Measured {
    ValueId id;
    Var measure;
  };

  void add_source(std::int32_t index) {
    const Node& node = program_.node(index);
    const Var source = tape_.var(tape_.append(node));
    const ValueId id{index, 0};
    values_[id] = source;
    if (node.op == &input_op()) inputs_.emplace_back(source, plays_.source(node));
    if (const Array* rounded = node.op == &parameter_op() ? rounded_.find(node.name) : nullptr) {
      values_[id] = rounded_parameter(node, *rounded);
      const Var exact = as_float64(source);
      measure(id, exact, exact);
    }
  }

  Var rounded_parameter(Node node, const Array& rounded) {
    const ValueType& type = node.outputs[0];
    if (rounded.dtype() != type.dtype || rounded.shape() != type.shape)
      throw Error("shadow: the rounded '" + node.name + "' must be " + to_string(type) + ", got " +
                  to_string(ValueType{rounded.dtype(), rounded.shape()}));
    node.name += " (rounded)";
    node.storage = rounded;
    node.serial = 0;
    return tape_.var(tape_.append(std::move(node)));
  }

  void add_call(std::int32_t index) {
    const Node& node = program_.node(index);
    Vars operands;
    for (const ValueId id : node.inputs) operands.push_back(values_[id]);
    const Vars values = append(node, operands);
    std::copy(values.begin(), values.end(), values_.of(index).begin());
    if (node.op->is_view())
      add_view(index);
    else
      add_shadows(index);
  }

  /// The elements of a view are elements of its operand, and so are their errors.
  void add_view(std::int32_t index) {
    const ValueId id{index, 0}, operand = program_.node(index).inputs[0];
    measured_.push_back({id, Var()});
    if (errors_[operand].empty()) return;
    Node moved = program_.node(index);
    moved.outputs = {{errors_[operand].dtype(), moved.outputs[0].shape}};
    errors_[id] = append(moved, {errors_[operand]})[0];
    const Var local = as_float64(values_[id]);
    measured_.back().measure = compared(id, local, with_error(local, errors_[id]))[1];
  }

  void add_shadows(std::int32_t index) {
    const Node& node = program_.node(index);
    bool inherits = false;
    Vars local;  // the operands of the play, converted to float64
    for (const ValueId id : node.inputs) {
      local.push_back(as_float64(values_[id]));
      inherits = inherits || !errors_[id].empty();
    }
    const Node wide = in_float64(node, types_of(local));
    const Vars of_local = append(wide, local);
    Vars of_exact = of_local;
    if (inherits) {
      Vars exact;  // the operands of a play in float64; cast again, so that `local` need not stay in memory until here
      for (const ValueId id : node.inputs) exact.push_back(with_error(as_float64(values_[id]), errors_[id]));
      of_exact = append(wide, exact);
    }
    for (std::size_t k = 0; k < of_local.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      if (users_.of(id).empty() && output_of_[id] < 0) continue;
      if (is_floating(values_[id].dtype()))
        measure(id, of_local[k], of_exact[k]);
      else
        measured_.push_back({id, sum(cast(values_[id] != of_exact[k], Dtype::int64))});
    }
  }

  /// Records the error of a value.
  void measure(ValueId id, const Var& local, const Var& exact) {
    const Vars found = compared(id, local, exact);
    errors_[id] = found[0];
    measured_.push_back({id, found[1]});
  }

  Vars compared(ValueId id, const Var& local, const Var& exact) const {
    return apply(rounding_error_op(), {values_[id], local, exact});
  }

  static Var with_error(const Var& value, const Var& error) {
    return error.empty() ? value : value + cast(error, Dtype::float64);
  }

  /// Appends the call of `node` on other operands.
  Vars append(Node node, const Vars& operands) {
    node.inputs.clear();
    for (const Var& operand : operands) node.inputs.push_back(operand.id());
    node.fused = false;  // the node is played unchanged, not expanded and fused again
    node.serial = 0;
    const std::int32_t index = tape_.append(std::move(node)).node;
    Vars outputs;
    for (std::size_t k = 0; k < tape_.node(index).outputs.size(); ++k)
      outputs.push_back(tape_.var({index, static_cast<std::int32_t>(k)}));
    return outputs;
  }

  NodeError described(ValueId id) const {
    const Node& node = program_.node(id.node);
    NodeError error;
    error.node = label_of(program_, id);
    error.op = node.op->name;
    error.module = node.site.scope ? node.site.scope->path : "";
    error.site = to_string(node.site);
    error.type = to_string(program_.type(id));
    error.elements = count_of(program_.type(id).shape);
    error.output = output_of_[id];
    return error;
  }

  const NodeByNode plays_;
  const Program program_;
  const Users users_;
  const Store& rounded_;
  Tape tape_;  // contains the play and its shadows
  // vars of tape_; an error is the value in float64 minus the value, and empty if the value is exact
  ValueTable<Var> values_, errors_;
  ValueTable<std::int64_t> output_of_;  // the index of the play's output, or -1
  std::vector<Measured> measured_;
  std::vector<std::pair<Var, Array>> inputs_;
  /// The index in the list of errors for a call inside a scan. The key is the scan, op, site and output.
  mutable std::map<std::tuple<std::int32_t, const Op*, std::uint64_t, std::int32_t>, std::size_t> first_step_;
};
}  // namespace

std::vector<NodeError> shadow(const RecordedPlay& play, const Store& rounded) {
  return Shadow(play, rounded).play(play.options, play.step);
}

std::vector<NodeError> ranked(std::vector<NodeError> errors, double threshold) {
  const auto is_less = [&](const NodeError& error) { return !(error.added() > threshold); };
  errors.erase(std::remove_if(errors.begin(), errors.end(), is_less), errors.end());
  const auto more = [](const NodeError& a, const NodeError& b) { return a.added() > b.added(); };
  std::ranges::stable_sort(errors, more);
  return errors;
}

}  // namespace xtape
