#include "trial.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "xtape/ops.hpp"
#include "xtape/team_profile.hpp"

namespace xtape::fuzz {

Way all_on(int threads, Floats floats) {
  return {"all on", {}, threads, floats};
}

Way reference(Floats floats) {
  return {"reference", Passes::reference(), 1, floats};
}

const std::vector<Way>& other_ways() {
  static const std::vector<Way> ways = [] {
    const std::pair<const char*, bool Passes::*> switches[] = {{"fuse", &Passes::fuse},
                                                               {"fold", &Passes::fold},
                                                               {"common", &Passes::common},
                                                               {"elementwise", &Passes::elementwise},
                                                               {"accumulate", &Passes::accumulate},
                                                               {"views", &Passes::views},
                                                               {"in_place", &Passes::in_place},
                                                               {"reuse", &Passes::reuse}};
    Passes none = Passes::reference();
    none.expand = false;
    Passes expanded;
    expanded.expand = true;
    std::vector<Way> all = {{"all off", none}, {"all on, expanded", expanded}};
    for (const auto& [name, pass] : switches) {
      Passes without, only = none;
      without.*pass = false;
      only.*pass = true;
      all.push_back({std::string("without ") + name, without});
      all.push_back({std::string("only ") + name, only});
    }
    return all;
  }();
  return ways;
}

namespace {
/// Fills an arena with NaN, so that reads of unwritten memory become visible.
void scribble(const std::shared_ptr<Arena>& arena) {
  static const Array nothing = [] {
    Array array(Dtype::float64, {1 << 14});
    std::fill_n(array.as<double>(), array.count(), std::numeric_limits<double>::quiet_NaN());
    return array;
  }();
  Tape tape;
  const Var x = tape.input("x", nothing.shape(), Dtype::float64);
  PlayerOptions options;
  options.threads = 1;
  options.arena = arena;
  Player player(tape, {sum(cumsum(x))}, options);
  player.play({{x, nothing}});
}
}  // namespace

Trial::Trial(const Recipe& recipe) : recipe_(recipe), arena_(make_arena()) {
  scribble(arena_);
}

const Subject& Trial::subject(Floats floats) {
  std::unique_ptr<Subject>& subject = subjects_[floats];
  if (subject == nullptr) {
    auto made = std::make_unique<Subject>(recipe_.mode, floats);
    recipe_.record(*made);
    subject = std::move(made);
  }
  return *subject;
}

Played played(const Subject& subject, const Way& way, const std::shared_ptr<Arena>& arena) {
  PlayerOptions options;
  options.passes = way.passes;
  options.threads = way.threads;
  options.seed = 7;
  options.carries = subject.carries;
  options.arena = arena;
  if (way.least_memory) options.memory = memory_curve(subject.tape, subject.outputs, options).back().bytes;
  Player player(subject.tape, subject.outputs, options);
  subject.start(player);
  Played result;
  result.plan = player.plan();
  std::optional<TeamProfile> team;
  if (way.simulated) team.emplace(TeamMachine{.threads = way.threads});
  for (std::size_t play = 0; play < plays; ++play) {
    player.play(subject.feeds(play % 2), play % 2);
    std::vector<Array>& values = result.values.emplace_back();
    for (const Var& output : subject.outputs) values.emplace_back(player.view(output));
    for (const Carry& carry : subject.carries) values.emplace_back(player.view(carry.output));
  }
  return result;
}

const Played& Trial::played(const Way& way) {
  const std::string key =
      way.name + "," + std::to_string(way.threads) + "," + std::to_string(static_cast<int>(way.floats));
  const auto found = played_.find(key);
  if (found != played_.end()) return found->second;
  return played_[key] = fuzz::played(subject(way.floats), way, arena_);
}

}  // namespace xtape::fuzz
