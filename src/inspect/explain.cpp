// Follows the gradient of a loss from a value to the loss.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "inspect/node_by_node.hpp"
#include "player/program/program.hpp"
#include "xtape/grad.hpp"
#include "xtape/inspect.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns whether a gradient can flow through the call. Integers have no gradient.
bool passes_gradient(const Node& node) {
  return node.op->differentiable &&
         std::ranges::any_of(node.outputs, [](const ValueType& type) { return is_floating(type.dtype); });
}

std::string why(const Node& node) {
  return node.op->name + (node.op->differentiable ? std::string(" to ") + name_of(node.outputs[0].dtype) : "") +
         " passes no gradient on";
}

/// Plays floating scalars on the tape of a play. `size` is the number of nodes that the play itself has on the tape.
std::map<std::int32_t, double> played_numbers(const RecordedPlay& play, const Tape& tape, std::size_t size,
                                              const Vars& numbers) {
  PlayerOptions options = for_single_nodes(play.options);
  options.passes = Passes();
  options.carries = play.options.carries;
  for (Carry& carry : options.carries)
    if (const Array* state = play.inputs.find(carry.input.node().name)) carry.memory = state->clone();
  Player player(tape, numbers, options);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < size; ++i) {
    const Node& input = tape.node(i);
    const auto is_this = [&](const Carry& carry) { return carry.input.id().node == static_cast<std::int32_t>(i); };
    if (input.op != &input_op() || std::ranges::any_of(options.carries, is_this)) continue;
    if (const Array* array = play.inputs.find(input.name))
      feeds.emplace_back(tape.var({static_cast<std::int32_t>(i), 0}), *array);
  }
  player.play(feeds, play.step);
  std::map<std::int32_t, double> results;
  for (const Var& var : numbers) results[var.id().node] = player.scalar(var);
  return results;
}

const Var& loss_of(const RecordedPlay& play) {
  if (play.outputs.empty()) throw Error("a gradient needs an output");
  const Var& loss = play.outputs[0];
  if (loss.tape() != play.tape)
    throw HandleError("a gradient needs an output of the play's own tape, not of another tape");
  if (loss.rank() != 0 || !is_floating(loss.dtype()))
    throw Error("a gradient needs a floating scalar as the first output, not " + to_string(loss.type()));
  return loss;
}

/// Removes what has been recorded on the tape of a play since the construction.
struct OnTape {
  Tape tape;
  const std::size_t size = tape.size();

  explicit OnTape(const RecordedPlay& play) : tape(play.tape) {}
  OnTape(const OnTape&) = delete;
  OnTape& operator=(const OnTape&) = delete;
  ~OnTape() { tape.truncate(size); }
};

/// Records gradients and their norms on the tape of a play.
class Flow {
 public:
  Flow(const RecordedPlay& play, const Var& value)
      : play_(play), recorded_(play), tape_(recorded_.tape), loss_(loss_of(play)), value_(value) {}

  GradientFlow run() {
    find_nodes();
    record();
    play();
    GradientFlow flow;
    flow.name = value_.node().name.empty() ? label(value_.id()) : value_.node().name;
    flow.norm = norm_of(value_.id());
    for (const Use& use : uses_of(value_.id())) flow.uses.push_back(step_of(use.user, use.norm));
    follow(flow);
    flow.cuts = cuts();
    return flow;
  }

 private:
  struct Use {
    std::int32_t user = -1;
    Var part;  // the norm of the gradient that flows back through the user; empty if there is none
    double norm = 0;
  };

  std::string label(ValueId id) const { return to_string(Origin{id.node, tape_.node(id.node).op}); }
  const Node& node(std::int32_t index) const { return tape_.node(index); }

  /// Marks the nodes that depend on the value, and among them the nodes between the value and the loss.
  void find_nodes() {
    const std::int32_t last = loss_.id().node;
    const std::vector<bool> needed = needed_by(tape_, {loss_.id()});
    depends_.assign(static_cast<std::size_t>(last) + 1, false);
    for (std::int32_t i = value_.id().node + 1; i <= last; ++i) {
      const auto reads = [&](ValueId id) {
        return is_floating(tape_.type(id).dtype) &&
               (id == value_.id() || (id.node > value_.id().node && depends_[id.node]));
      };
      if (!std::any_of(node(i).inputs.begin(), node(i).inputs.end(), reads)) continue;
      if (!passes_gradient(node(i))) {
        if (needed[i]) cut_.push_back({label({i, 0}), to_string(node(i).site), why(node(i))});
        continue;
      }
      depends_[i] = true;
      if (!needed[i]) continue;
      users_.push_back(i);
      for (const ValueId id : node(i).inputs)
        if (reads(id)) uses_[id].push_back({i, {}, 0});
    }
    for (auto& each : uses_) {
      std::vector<Use>& list = each.second;
      const auto same = [](const Use& a, const Use& b) { return a.user == b.user; };
      list.erase(std::unique(list.begin(), list.end(), same), list.end());
    }
  }

  Var record_norm(const Var& gradient) {
    measured_.push_back(sum(square(cast(gradient, Dtype::float64))));
    return measured_.back();
  }

  void record() {
    Vars values{value_};
    for (const std::int32_t user : users_)
      for (std::size_t k = 0; k < node(user).outputs.size(); ++k) {
        const Var output = tape_.var({user, static_cast<std::int32_t>(k)});
        if (is_floating(output.dtype())) values.push_back(output);
      }
    const Vars gradients = grad(loss_, values, {.materialize_grads = true});
    std::map<ValueId, Var> gradient_of;
    for (std::size_t i = 0; i < values.size(); ++i) {
      gradient_of[values[i].id()] = gradients[i];
      norms_[values[i].id()] = {record_norm(gradients[i]), mean(cast(gradients[i] == 0, Dtype::float32))};
      measured_.push_back(norms_[values[i].id()].second);
    }
    for (auto& [key, list] : uses_)
      for (Use& use : list) {
        Vars cotangents;
        std::vector<std::int32_t> outputs;
        for (std::size_t k = 0; k < node(use.user).outputs.size(); ++k) {
          const auto found = gradient_of.find({use.user, static_cast<std::int32_t>(k)});
          if (found == gradient_of.end()) continue;
          outputs.push_back(found->first.output);
          cotangents.push_back(found->second);
        }
        if (!outputs.empty()) use.part = record_norm(part_of(use.user, key, outputs, cotangents));
      }
  }

  /// Returns the gradient with respect to an operand through this call alone. Differentiates a copy of the call that
  /// reads a stand-in instead of the operand. No other operand depends on the stand-in.
  Var part_of(std::int32_t user, ValueId operand, const std::vector<std::int32_t>& outputs, const Vars& cotangents) {
    const Var stand_in = stop_gradient(tape_.var(operand));
    Node copy = node(user);
    std::replace(copy.inputs.begin(), copy.inputs.end(), operand, stand_in.id());
    copy.serial = 0;
    const std::int32_t index = tape_.append(std::move(copy)).node;
    Vars of_copy;
    for (const std::int32_t output : outputs) of_copy.push_back(tape_.var({index, output}));
    return grad(of_copy, {stand_in}, cotangents, {.materialize_grads = true})[0];
  }

  void play() {
    results_ = played_numbers(play_, tape_, recorded_.size, measured_);
    for (auto& each : uses_)
      for (Use& use : each.second)
        if (!use.part.empty()) use.norm = std::sqrt(results_.at(use.part.id().node));
  }

  double norm_of(ValueId id) const { return std::sqrt(results_.at(norms_.at(id).first.id().node)); }
  double zeros_of(ValueId id) const { return results_.at(norms_.at(id).second.id().node); }

  std::vector<Use> uses_of(ValueId id) const {
    const auto found = uses_.find(id);
    std::vector<Use> list = found == uses_.end() ? std::vector<Use>() : found->second;
    std::ranges::stable_sort(list, [](const Use& a, const Use& b) { return a.norm > b.norm; });
    return list;
  }

  FlowValue step_of(std::int32_t user, double norm) const {
    const ValueId id = output_of(user);
    return {label(id), to_string(node(user).site), to_string(tape_.type(id)), norm, zeros_of(id)};
  }
  /// Returns the output that has the largest gradient among the outputs of a node.
  ValueId output_of(std::int32_t user) const {
    ValueId best{user, 0};
    double most = -1;
    for (std::size_t k = 0; k < node(user).outputs.size(); ++k) {
      const ValueId id{user, static_cast<std::int32_t>(k)};
      if (norms_.count(id) == 0 || norm_of(id) <= most) continue;
      best = id;
      most = norm_of(id);
    }
    return best;
  }

  void follow(GradientFlow& flow) const {
    for (ValueId at = value_.id(); at.node != loss_.id().node;) {
      const std::vector<Use> list = uses_of(at);
      if (list.empty()) break;
      at = output_of(list[0].user);
      flow.path.push_back(step_of(list[0].user, norm_of(at)));
    }
  }

  std::vector<FlowCut> cuts() const {
    constexpr double least = 1e-6;  // a call cuts off the gradient if it passes on at most this fraction
    std::vector<FlowCut> found = cut_;
    for (const auto& each : uses_)
      for (const Use& use : each.second) {
        const ValueId output = output_of(use.user);
        const double given = norms_.count(output) > 0 ? norm_of(output) : 0;
        if (given == 0 || use.norm > least * given) continue;
        found.push_back({label(output), to_string(node(use.user).site),
                         use.norm == 0 ? "its gradient is not 0, but all that it passes on is 0"
                                       : "it passes on less than a millionth of its gradient"});
      }
    return found;
  }

  const RecordedPlay& play_;
  const OnTape recorded_;
  Tape tape_;
  const Var loss_, value_;
  std::vector<bool> depends_;
  std::vector<std::int32_t> users_;  // between the value and the loss, in order
  std::map<ValueId, std::vector<Use>> uses_;
  std::map<ValueId, std::pair<Var, Var>> norms_;  // the sum of squares of each gradient, and its fraction of zeros
  Vars measured_;
  std::map<std::int32_t, double> results_;
  std::vector<FlowCut> cut_;
};
}  // namespace

GradientFlow explain_gradient(const RecordedPlay& play, const Var& value) {
  if (value.tape() != play.tape) throw HandleError("explain_gradient: the var belongs to another tape");
  return Flow(play, value).run();
}

namespace {
/// The float parameters by name: parameters without a gradient, and parameters with one.
struct ParameterText {
  std::vector<std::string> without;
  NamedVars with;
};

ParameterText parameters_of(const RecordedPlay& play) {
  const Tape& tape = play.tape;
  const std::int32_t loss = loss_of(play).id().node;
  // whether the loss depends differentiably on the node
  std::vector<bool> reaches(static_cast<std::size_t>(loss) + 1, false);
  reaches.back() = true;
  for (std::size_t i = reaches.size(); i-- > 0;)
    if (reaches[i] && passes_gradient(tape.node(i)))
      for (const ValueId id : tape.node(i).inputs)
        if (is_floating(tape.type(id).dtype)) reaches[id.node] = true;
  ParameterText found;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op != &parameter_op() || !is_floating(node.outputs[0].dtype)) continue;
    if (i >= reaches.size() || !reaches[i])
      found.without.push_back(node.name);
    else
      found.with.set(node.name, tape.var({static_cast<std::int32_t>(i), 0}));
  }
  return found;
}
}  // namespace

std::vector<std::string> parameters_without_gradient(const RecordedPlay& play) {
  return parameters_of(play).without;
}

std::vector<std::string> parameters_with_zero_gradient(const RecordedPlay& play) {
  const NamedVars parameters = parameters_of(play).with;
  const OnTape recorded(play);
  Vars vars, counts;  // counts: the numbers of gradient elements that are not 0
  for (const auto& each : parameters) vars.push_back(each.value);
  for (const Var& gradient : grad(loss_of(play), vars, {.materialize_grads = true}))
    counts.push_back(sum(cast(gradient != 0, Dtype::float64)));
  std::vector<std::string> names;
  if (counts.empty()) return names;
  const std::map<std::int32_t, double> played = played_numbers(play, recorded.tape, recorded.size, counts);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (played.at(counts[i].id().node) == 0) names.push_back(parameters[i].name);
  return names;
}

}  // namespace xtape
