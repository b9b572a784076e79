#include "xtape/compiled.hpp"

#include <algorithm>
#include <mutex>

#include "calls.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// A function recorded and compiled for arguments of these types.
struct Recorded {
  std::vector<ValueType> types;
  Vars inputs, outputs;
  Executable executable;
};

std::vector<ValueType> types_of(const std::vector<ArrayView>& arguments) {
  std::vector<ValueType> types;
  for (const ArrayView& each : arguments) types.push_back({each.dtype(), each.shape()});
  return types;
}

/// The function, and what was compiled of it: what copies share.
class Plans {
 public:
  Plans(Compiled::Function function, const PlayerOptions& options, const Tape& like)
      : function_(std::move(function)), options_(options), like_(like.blank()) {}

  std::shared_ptr<const Recorded> of(const std::vector<ValueType>& types) {
    const std::lock_guard lock(using_);
    const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& each) { return each->types == types; });
    if (known != plans_.end()) return *known;
    std::shared_ptr<const Recorded> made = recorded(types);
    plans_.push_back(made);
    return made;
  }
  std::size_t count() const {
    const std::lock_guard lock(using_);
    return plans_.size();
  }
  void clear() {
    const std::lock_guard lock(using_);
    plans_.clear();
  }

 private:
  std::shared_ptr<const Recorded> recorded(const std::vector<ValueType>& types) const {
    Tape tape = like_.blank();
    Vars inputs;
    for (const ValueType& type : types)
      inputs.push_back(tape.input("argument " + std::to_string(inputs.size()), type.shape, type.dtype));
    const Vars outputs = function_(inputs);
    return std::make_shared<Recorded>(Recorded{types, inputs, outputs, compile(tape, outputs, options_)});
  }

  Compiled::Function function_;
  PlayerOptions options_;
  Tape like_;
  mutable std::recursive_mutex using_;  // the function may call a copy
  std::vector<std::shared_ptr<const Recorded>> plans_;
};

struct Playing {
  std::shared_ptr<const Recorded> recorded;
  Player player;
};
}  // namespace

struct Compiled::Data {
  std::shared_ptr<Plans> plans;
  std::vector<std::unique_ptr<Playing>> players = {};
  const Player* last = nullptr;
  std::uint64_t step = 0;

  Playing& player_for(const std::vector<ArrayView>& arguments) {
    const std::vector<ValueType> types = types_of(arguments);
    const auto known =
        std::find_if(players.begin(), players.end(), [&](const auto& each) { return each->recorded->types == types; });
    if (known != players.end()) return **known;
    std::shared_ptr<const Recorded> recorded = plans->of(types);
    Player player(recorded->executable);
    return *players.emplace_back(std::make_unique<Playing>(Playing{std::move(recorded), std::move(player)}));
  }
};

Compiled::Compiled(OfVars, Function function, const PlayerOptions& options, const Tape& like)
    : data_(new Data{std::make_shared<Plans>(std::move(function), options, like)}) {
  if (!options.carries.empty()) throw Error("Compiled: a compiled function has no carries");
}

Compiled::Compiled(const Compiled& other) : data_(new Data{other.data_->plans, {}, nullptr, other.data_->step}) {}

void Compiled::check_count(std::size_t given, std::size_t wanted) {
  if (given != wanted)
    throw Error("the compiled function takes " + std::to_string(wanted) + " arrays, not " + std::to_string(given));
}

std::vector<ArrayView> Compiled::operator()(const std::vector<ArrayView>& arguments, Caller caller) {
  return at_place(caller, [&] {
    auto& [recorded, player] = data_->player_for(arguments);
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < arguments.size(); ++i) feeds.emplace_back(recorded->inputs[i], arguments[i]);
    player.play(feeds, data_->step++);
    data_->last = &player;
    std::vector<ArrayView> results;
    for (const Var& output : recorded->outputs) results.push_back(player.view(output));
    return results;
  });
}

std::size_t Compiled::plans() const {
  return data_->plans->count();
}

const Player& Compiled::last() const {
  if (data_->last == nullptr) throw Error("the compiled function has not been called yet");
  return *data_->last;
}

std::uint64_t Compiled::step() const {
  return data_->step;
}
void Compiled::set_step(std::uint64_t random_step) {
  data_->step = random_step;
}

void Compiled::clear() {
  data_->plans->clear();
  data_->players.clear();
  data_->last = nullptr;
}

}  // namespace xtape
