#include "xtape/compiled.hpp"

#include <algorithm>

#include "calls.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// A function recorded for arguments of these types.
struct Planned {
  std::vector<ValueType> types;
  Vars inputs, outputs;
  Player player;
};

std::vector<ValueType> types_of(const std::vector<ArrayView>& arguments) {
  std::vector<ValueType> types;
  for (const ArrayView& each : arguments) types.push_back({each.dtype(), each.shape()});
  return types;
}
}  // namespace

struct Compiled::Data {
  Function function;
  PlayerOptions options;
  Tape like;
  std::vector<std::unique_ptr<Planned>> plans;
  const Planned* last = nullptr;
  std::uint64_t step = 0;

  std::unique_ptr<Planned> planned(const std::vector<ValueType>& types) const {
    Tape tape = like.blank();
    Vars inputs;
    for (const ValueType& type : types)
      inputs.push_back(tape.input("argument " + std::to_string(inputs.size()), type.shape, type.dtype));
    Vars outputs = function(inputs);
    return std::make_unique<Planned>(Planned{types, inputs, outputs, Player(tape, outputs, options)});
  }

  Planned& plan_for(const std::vector<ArrayView>& arguments) {
    const std::vector<ValueType> types = types_of(arguments);
    const auto known = std::find_if(plans.begin(), plans.end(), [&](const auto& each) { return each->types == types; });
    if (known != plans.end()) return **known;
    plans.push_back(planned(types));
    return *plans.back();
  }
};

Compiled::Compiled(Recorded, Function function, const PlayerOptions& options, const Tape& like)
    : data_(new Data{std::move(function), options, like.blank(), {}, nullptr, 0}) {
  if (!options.carries.empty()) throw Error("Compiled: a compiled function has no carries");
}

void Compiled::check_count(std::size_t given, std::size_t wanted) {
  if (given != wanted)
    throw Error("the compiled function takes " + std::to_string(wanted) + " arrays, not " + std::to_string(given));
}

std::vector<ArrayView> Compiled::operator()(const std::vector<ArrayView>& arguments, Caller caller) {
  return at_place(caller, [&] {
    Planned& plan = data_->plan_for(arguments);
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < arguments.size(); ++i) feeds.emplace_back(plan.inputs[i], arguments[i]);
    plan.player.play(feeds, data_->step++);
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
