#include "xtape/compiled.hpp"

#include "functions/function_plans.hpp"
#include "tape/calls.hpp"

namespace xtape {

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
