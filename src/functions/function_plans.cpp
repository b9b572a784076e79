#include "functions/function_plans.hpp"

#include <algorithm>
#include <mutex>

#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// The parts of a plan that all copies of a FunctionPlans share.
struct Recorded {
  std::vector<ValueType> types;
  Vars inputs, outputs;
  Executable executable;
};

Executable compiled(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  Vars played;
  for (const Var& output : outputs)
    if (!output.empty()) played.push_back(output);
  return compile(tape, played, options);
}
}  // namespace

FunctionPlan plan_of(const Tape& tape, const std::vector<ValueType>& types, const Vars& inputs, const Vars& outputs,
                     const PlayerOptions& options) {
  return {types, inputs, outputs, Player(compiled(tape, outputs, options))};
}

/// The function and its compiled plans.
class FunctionPlans::Shared {
 public:
  Shared(Compiled::Function function, const PlayerOptions& options, const Tape& like)
      : function_(std::move(function)), options_(options), like_(like.blank()) {}

  std::shared_ptr<const Recorded> of(const std::vector<ValueType>& types) {
    const std::lock_guard lock(using_);
    const auto known = std::ranges::find_if(all_, [&](const auto& each) { return each->types == types; });
    if (known != all_.end()) return *known;
    std::shared_ptr<const Recorded> made = recorded(types);
    all_.push_back(made);
    return made;
  }
  std::size_t count() const {
    const std::lock_guard lock(using_);
    return all_.size();
  }
  void clear() {
    const std::lock_guard lock(using_);
    all_.clear();
  }
  Dtype default_dtype() const { return like_.default_dtype(); }

 private:
  std::shared_ptr<const Recorded> recorded(const std::vector<ValueType>& types) const {
    Tape tape = like_.blank();
    Vars inputs;
    for (const ValueType& type : types)
      inputs.push_back(tape.input("argument " + std::to_string(inputs.size()), type.shape, type.dtype));
    const Vars outputs = function_(inputs);
    return std::make_shared<Recorded>(Recorded{types, inputs, outputs, compiled(tape, outputs, options_)});
  }

  Compiled::Function function_;
  PlayerOptions options_;
  Tape like_;
  mutable std::recursive_mutex using_;  // recursive, because the function may call a copy
  std::vector<std::shared_ptr<const Recorded>> all_;
};

FunctionPlans::FunctionPlans(Compiled::Function function, const PlayerOptions& options, const Tape& like)
    : shared_(std::make_shared<Shared>(std::move(function), options, like)) {}
FunctionPlans::~FunctionPlans() = default;

FunctionPlan& FunctionPlans::play(const std::vector<ArrayOrNumber>& arguments, std::uint64_t step) {
  std::vector<ArrayView> arrays;
  for (const ArrayOrNumber& each : arguments) arrays.push_back(each.view(shared_->default_dtype()));
  FunctionPlan& plan = plan_for(arrays);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < arrays.size(); ++i) feeds.emplace_back(plan.inputs[i], arrays[i]);
  plan.player.play(feeds, step);
  return plan;
}

FunctionPlan& FunctionPlans::plan_for(const std::vector<ArrayView>& arrays) {
  std::vector<ValueType> types;
  for (const ArrayView& each : arrays) types.push_back({each.dtype(), each.shape()});
  const auto known = std::ranges::find_if(plans_, [&](const auto& each) { return each->types == types; });
  if (known != plans_.end()) return **known;
  const std::shared_ptr<const Recorded> found = shared_->of(types);
  plans_.push_back(std::make_unique<FunctionPlan>(
      FunctionPlan{found->types, found->inputs, found->outputs, Player(found->executable)}));
  return *plans_.back();
}

std::size_t FunctionPlans::size() const {
  return shared_->count();
}

void FunctionPlans::clear() {
  shared_->clear();
  plans_.clear();
}

}  // namespace xtape
