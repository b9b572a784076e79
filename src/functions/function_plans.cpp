#include "functions/function_plans.hpp"

#include <algorithm>
#include <mutex>

#include "tape/calls.hpp"
#include "xtape/compiled.hpp"
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

struct Compiled::Data {
  FunctionPlans plans;
  const FunctionPlan* last = nullptr;
  std::uint64_t step = 0;
};

Compiled::Compiled(Recorded, Function function, const PlayerOptions& options, const Tape& like)
    : data_(new Data{{std::move(function), options, like}}) {
  if (!options.carries.empty()) throw Error("Compiled: a compiled function has no carries");
}

Compiled::Compiled(const Compiled& other) : data_(new Data{other.data_->plans, nullptr, other.data_->step}) {}

ArrayView ArrayOrNumber::view(Dtype real) const {
  if (!number_) return array_;
  const Dtype dtype = number_->is_boolean() ? Dtype::boolean : number_->is_whole() ? Dtype::int64 : real;
  return array_of({*number_}, dtype, {});
}

void Compiled::check_given(bool given) {
  if (!given) throw Error("the function to record is empty: give a function of vars, which returns a Var or Vars");
}

void Compiled::check_count(std::size_t given, std::size_t wanted) {
  if (given != wanted)
    throw Error("the compiled function takes " + std::to_string(wanted) + " arrays, not " + std::to_string(given));
}

std::vector<ArrayView> Compiled::operator()(const ArraysOrNumbers& arguments, Caller caller) {
  return at_place(caller, [&] {
    FunctionPlan& plan = data_->plans.play(arguments.list(), data_->step);
    ++data_->step;
    data_->last = &plan;
    std::vector<ArrayView> results;
    for (const Var& output : plan.outputs) results.push_back(plan.player.view(output));
    return results;
  });
}

std::size_t Compiled::plans() const {
  return data_->plans.size();
}

const Player& Compiled::last() const {
  if (data_->last == nullptr) throw Error("the compiled function has not been called yet");
  return data_->last->player;
}

std::uint64_t Compiled::step() const {
  return data_->step;
}
void Compiled::set_step(std::uint64_t random_step) {
  data_->step = random_step;
}

void Compiled::clear() {
  data_->plans.clear();
  data_->last = nullptr;
}

}  // namespace xtape
