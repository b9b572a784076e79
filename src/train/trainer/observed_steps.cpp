#include "train/trainer/observed_steps.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/messages/wording.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape::train {

namespace {
using Recording = FunctionCache<ObservedNotes>::Recording;

PlayerOptions unmeasured(PlayerOptions options) {
  options.profile = false;
  options.trace = nullptr;
  return options;
}

/// Returns the first result of the module, or nothing if this result is not a float array.
std::optional<Var> result_of(const NamedVars& values, const std::string& module) {
  for (const std::string& name : {module, module + ".0"})
    if (const Var* value = values.find(name); value != nullptr && is_floating(value->dtype())) return *value;
  return std::nullopt;
}

Var share(const Var& condition) {
  return mean(cast(condition, Dtype::float32));
}

/// Returns the fraction of saturated elements in the result of a bounded function. An element is saturated if the slope
/// of the function there is below a fiftieth of its maximum. For tanh this means |tanh| > 0.99. sigmoid is tanh shifted
/// and scaled, so the same bound applies.
std::optional<Var> saturated(const Var& result, const Op& op) {
  constexpr double bound = 0.99;
  if (op.name == "tanh") return share(abs(result) > bound);
  if (op.name == "sigmoid") return share(abs(result * 2 - 1) > bound);
  return std::nullopt;
}

/// Returns the fraction of rows of scores in which everything is masked: no score exceeds the numbers that masks use.
std::optional<Var> masked_rows(const Tape& tape, const Node& node) {
  constexpr double masked = -1e9;
  if (node.op->name != "softmax" && node.op->name != "log_softmax") return std::nullopt;
  const auto* axis = node.attributes.find("axis");
  if (axis == nullptr || std::get_if<std::int64_t>(axis) == nullptr) return std::nullopt;
  return share(max(tape.var(node.inputs[0]), {std::get<std::int64_t>(*axis)}) <= masked);
}

/// Returns the mean of several fractions, or an empty var if there are none.
Var mean_of(const Vars& shares) {
  if (shares.empty()) return {};
  Var sum = shares[0];
  for (std::size_t i = 1; i < shares.size(); ++i) sum = sum + shares[i];
  return sum / static_cast<double>(shares.size());
}

/// For each module path, the nodes that the module records itself, without the nodes of its inner modules.
using NodesOf = std::unordered_map<std::string, std::vector<std::size_t>>;
NodesOf nodes_by_module(const Tape& tape) {
  NodesOf nodes;
  for (std::size_t i = 0; i < tape.size(); ++i) nodes[tape.node(i).site.scope->path].push_back(i);
  return nodes;
}

/// Records the statistics of the calls that the module itself makes.
void note_calls(Tape tape, const NodesOf& nodes, ModuleNotes& notes) {
  const auto own = nodes.find(notes.module);
  if (own == nodes.end()) return;
  Vars near_bounds, without_keys;
  for (const std::size_t i : own->second) {
    const Node node = tape.node(i);
    const Var result = tape.var({static_cast<std::int32_t>(i), 0});
    if (const auto found = saturated(result, *node.op)) near_bounds.push_back(*found);
    if (const auto found = masked_rows(tape, node)) without_keys.push_back(*found);
  }
  notes.saturated = mean_of(near_bounds);
  notes.masked_rows = mean_of(without_keys);
}

Recording with_statistics(const Model& model, const std::string& loss, const NamedSizes& sizes) {
  Tape tape(Mode::train);
  RecordedLines lines;
  const RecordedLoss recorded = record_loss(model, loss, tape, sizes, &lines);
  const NamedVars& values = lines.values;
  const NodesOf nodes = nodes_by_module(tape);
  ObservedNotes notes{.loss = recorded.loss, .states = recorded.states};
  Vars returned;
  for (const ModuleSummary& module : model.modules()) {
    if (module.path.empty()) continue;
    const std::optional<Var> result = result_of(values, module.path);
    if (!result) continue;
    returned.push_back(*result);
    notes.modules.emplace_back().module = module.path;
  }
  const Vars gradients = returned.empty() ? Vars() : grad(recorded.loss.sum, returned, {.allow_unused = true});
  NamedVars results{{"count", recorded.loss.count}};
  const auto keep = [&](const std::string& name, const Var& var) {
    if (!var.empty()) results.add(name, var);
    return var;
  };
  for (std::size_t i = 0; i < returned.size(); ++i) {
    ModuleNotes& of = notes.modules[i];
    const auto measure = [&](const Var& values_of, const std::string& what, Var& largest, Var& mean_size, Var& zeros) {
      const Var size = abs(values_of);
      largest = keep(of.module + what + " largest", max(size));
      mean_size = keep(of.module + what + " mean", mean(size));
      zeros = keep(of.module + what + " zeros", share(equal(values_of, 0)));
    };
    measure(returned[i], "", of.largest, of.mean, of.zeros);
    if (!gradients[i].empty())
      measure(gradients[i], " gradient", of.gradient_largest, of.gradient_mean, of.gradient_zeros);
    note_calls(tape, nodes, of);
    keep(of.module + " saturated", of.saturated);
    keep(of.module + " masked rows", of.masked_rows);
  }
  return {tape, recorded.inputs, results, notes};
}

Recording with_values(const Model& model, const std::string& loss, const NamedSizes& sizes,
                      const std::vector<std::string>& names) {
  Tape tape(Mode::train);
  RecordedLines lines;
  const RecordedLoss recorded = record_loss(model, loss, tape, sizes, &lines);
  const NamedVars& values = lines.values;
  NamedVars results;
  for (const std::string& name : names) {
    if (!values.has(name))
      throw DefinitionError("the training step of model '" + model.name() + "' computes no '" + name + "'" +
                            did_you_mean(name, values.names()) +
                            ": a watched value is what a module returns, such as 'h.0.attn', or what one of its lines "
                            "assigns, such as 'h.0.attn.scores', outside scans and checkpoints");
    results.set(name, values.at(name));
  }
  return {tape, recorded.inputs, results, {.loss = recorded.loss, .states = recorded.states}};
}
}  // namespace

void check_watched(const Model& model, const std::string& loss, const BatchArrays& batch,
                   const std::vector<std::string>& names) {
  if (!names.empty()) with_values(model, loss, loss_sizes(model, loss, batch), names);
}

ObservedSteps::ObservedSteps(const Model& model, const PlayerOptions& playing)
    : model_(model), steps_(64, unmeasured(playing)) {}

ObservedSteps::Function& ObservedSteps::of(const std::string& loss, const BatchArrays& batch,
                                           const std::vector<std::string>& names) {
  const std::string what = names.empty() ? "statistics" : "watched " + joined(names, {}, " ");
  return *steps_.of({loss, Mode::train, loss_sizes(model_, loss, batch), what}, [&](const FunctionKey& key) {
    return names.empty() ? with_statistics(model_, loss, key.sizes) : with_values(model_, loss, key.sizes, names);
  });
}

std::vector<ModuleStatistics> ObservedSteps::statistics_of(const Function& step) {
  const double count = step.player.scalar(step.notes.loss.count);
  const auto number = [&](const Var& var) -> std::optional<double> {
    return var.empty() ? std::nullopt : std::optional(step.player.scalar(var));
  };
  const auto of_mean = [&](const Var& var) {  // converts gradients of the sum of losses to gradients of the mean
    std::optional<double> value = number(var);
    if (value) *value /= count;
    return value;
  };
  std::vector<ModuleStatistics> all;
  for (const ModuleNotes& each : step.notes.modules)
    all.push_back({.module = each.module,
                   .largest = step.player.scalar(each.largest),
                   .mean = step.player.scalar(each.mean),
                   .zeros = step.player.scalar(each.zeros),
                   .gradient_largest = of_mean(each.gradient_largest),
                   .gradient_mean = of_mean(each.gradient_mean),
                   .gradient_zeros = number(each.gradient_zeros),
                   .saturated = number(each.saturated),
                   .masked_rows = number(each.masked_rows)});
  return all;
}

std::vector<WatchedValue> ObservedSteps::values_of(const Function& step) {
  std::vector<WatchedValue> values;
  for (const auto& [name, var] : step.results)
    values.push_back({name, to_string(var.type()), range_of(step.player.view(var))});
  return values;
}

}  // namespace xtape::train
