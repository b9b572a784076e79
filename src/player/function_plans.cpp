#include "function_plans.hpp"

#include <algorithm>

#include "xtape/op/op.hpp"

namespace xtape {

FunctionPlan plan_of(const Tape& tape, const std::vector<ValueType>& types, const Vars& inputs, const Vars& outputs,
                     const PlayerOptions& options) {
  Vars played;
  for (const Var& output : outputs)
    if (!output.empty()) played.push_back(output);
  return {types, inputs, outputs, Player(tape, played, options)};
}

void play(FunctionPlan& plan, const std::vector<ArrayView>& arguments, std::uint64_t step) {
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < arguments.size(); ++i) feeds.emplace_back(plan.inputs[i], arguments[i]);
  plan.player.play(feeds, step);
}

FunctionPlan& FunctionPlans::plan_for(const std::vector<ArrayView>& arguments) {
  std::vector<ValueType> types;
  for (const ArrayView& each : arguments) types.push_back({each.dtype(), each.shape()});
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& each) { return each->types == types; });
  if (known != plans_.end()) return **known;
  Tape tape = like_.blank();
  Vars inputs;
  for (const ValueType& type : types)
    inputs.push_back(tape.input("argument " + std::to_string(inputs.size()), type.shape, type.dtype));
  const Vars outputs = function_(inputs);
  plans_.push_back(std::make_unique<FunctionPlan>(plan_of(tape, types, inputs, outputs, options_)));
  return *plans_.back();
}

}  // namespace xtape
