#include "xtape/team_profile.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <utility>

#include "base/system/team.hpp"
#include "base/threads/simulated_team.hpp"
#include "inspect/cache_model.hpp"
#include "xtape/player.hpp"

namespace xtape {

namespace {
struct Loss {
  const char* name;
  double seconds;  // of all threads together
};

std::vector<Loss> losses_of(const TeamWork& work, int threads) {
  return {{"serial code", (threads - 1) * work.serial},
          {"too few pieces", threads * work.few},
          {"uneven pieces", threads * work.uneven},
          {"meetings", threads * work.meetings},
          {"memory", threads * work.memory}};
}

Loss largest_loss(const TeamWork& work, int threads) {
  const std::vector<Loss> losses = losses_of(work, threads);
  return *std::ranges::max_element(losses, {}, &Loss::seconds);
}

Meetings meetings_of(const TeamMachine& machine) {
  return {machine.threads, machine.meeting, machine.meeting_each, machine.waking, machine.rising};
}
}  // namespace

const char* TeamWork::cause(int threads) const {
  return largest_loss(*this, threads).name;
}

TeamWork& TeamWork::operator+=(const TeamWork& other) {
  calls += other.calls;
  seconds += other.seconds;
  work += other.work;
  serial += other.serial;
  few += other.few;
  uneven += other.uneven;
  meetings += other.meetings;
  memory += other.memory;
  traffic += other.traffic;
  loops += other.loops;
  pieces += other.pieces;
  return *this;
}

namespace {
/// A step of a plan, or a kind of work outside of players.
struct Step {
  /// Executions with the same regions and pieces.
  struct Same {
    WorkTimes times;
    double traffic;  // bytes of all executions
  };
  std::string op, module;
  std::vector<Same> executions = {};

  void add(WorkTimes times, double traffic) {
    for (Same& same : executions)
      if (same.times.add(times)) {
        same.traffic += traffic;
        return;
      }
    executions.push_back({std::move(times), traffic});
  }
};

/// Returns the work of executions. Each takes as long as the team computes, but at least until memory has moved the
/// bytes. Whether stalls for memory are part of the measured pieces or not: both happen at the same time.
TeamWork work_of(const Step::Same& same, const TeamMachine& machine) {
  const TeamTimes times = times_of(same.times, meetings_of(machine));
  const auto calls = static_cast<double>(same.times.executions);
  const double from_memory = machine.bandwidth > 0 ? same.traffic / calls / machine.bandwidth : 0;
  const double seconds = std::max(times.seconds, from_memory);
  return {.op = {},
          .module = {},
          .calls = same.times.executions,
          .seconds = calls * seconds,
          .work = calls * times.work,
          .serial = calls * times.serial,
          .few = calls * times.few,
          .uneven = calls * times.uneven,
          .meetings = calls * times.meetings,
          .memory = calls * (seconds - times.seconds),
          .traffic = same.traffic,
          .loops = same.times.executions * times.regions,
          .pieces = same.times.executions * times.pieces};
}
}  // namespace

struct TeamProfile::Data : SimulatedTeam {
  explicit Data(const TeamMachine& of) : SimulatedTeam(meetings_of(of)), machine(of), cache(of.cache) {}

  // What happens within a piece of a parallel loop, such as the plays of a batch, is a part of its time.

  void touched(const void* address, std::size_t bytes, bool written) override {
    if (machine.bandwidth == 0 || is_alone()) return;
    if (!taken) taken = take();  // the model of the cache takes time that does not count
    moved += static_cast<double>(cache.touch(address, bytes, written));
  }

  void played(const Plan& plan, std::size_t step) override {
    if (is_alone()) return;
    if (!taken) taken = take();
    std::vector<Step>& of_plan = steps_of[&plan];
    const auto is_of = [](const Plan::Step& each, const Step& of) {
      return each.op == of.op && each.module == of.module;
    };
    if (step >= of_plan.size() || !is_of(plan.steps[step], of_plan[step])) {  // new, or where another plan was before
      std::ranges::move(of_plan, std::back_inserter(ended));
      of_plan.clear();
      for (const Plan::Step& each : plan.steps) of_plan.push_back({each.op, each.module});
    }
    add(of_plan[step]);
  }

  void worked(const char* what) override {
    if (is_alone()) return;
    if (!taken) taken = take();
    Step& step = outside[what];
    step.op = what;
    add(step);
  }

  void forget() override {
    steps_of.clear();
    outside.clear();
    ended.clear();
    taken.reset();
    moved = 0;
    restart();
  }

  void add(Step& step) {
    step.add(std::move(*taken), std::exchange(moved, 0));
    taken.reset();
    restart();
  }

  std::vector<TeamWork> works() const {
    std::map<std::pair<std::string, std::string>, TeamWork> by_name;
    const auto add = [&](const Step& step) {
      for (const Step::Same& same : step.executions) {
        TeamWork& work = by_name[{step.op, step.module}];
        work.op = step.op;
        work.module = step.module;
        work += work_of(same, machine);
      }
    };
    std::ranges::for_each(ended, add);
    for (const auto& [plan, steps] : steps_of) std::ranges::for_each(steps, add);
    for (const auto& [name, step] : outside) add(step);
    std::vector<TeamWork> all;
    for (const auto& [name, work] : by_name) all.push_back(work);
    return all;
  }

  TeamMachine machine;
  CacheModel cache;
  std::optional<WorkTimes> taken;  // the work that ends with the next call of add
  double moved = 0;                // bytes of this work
  std::map<const Plan*, std::vector<Step>> steps_of;
  std::map<std::string, Step> outside;  // work outside of players
  std::vector<Step> ended;              // of plans that no longer exist
};

TeamProfile::TeamProfile(const TeamMachine& machine)
    : data_([&] {
        const auto valid = [](double number) { return number >= 0 && std::isfinite(number); };
        if (machine.threads < 1 || !valid(machine.meeting) || !valid(machine.meeting_each) || !valid(machine.waking) ||
            !valid(machine.rising) || !valid(machine.bandwidth))
          throw Error("a team must have threads, and a meeting and a bandwidth of at least 0");
        return std::make_unique<Data>(machine);
      }()) {}
TeamProfile::~TeamProfile() = default;

void TeamProfile::note(const std::string& what) {
  data_->worked(what.c_str());
}
void TeamProfile::forget() {
  data_->forget();
}
const TeamMachine& TeamProfile::machine() const {
  return data_->machine;
}
std::vector<TeamWork> TeamProfile::works() const {
  return data_->works();
}

// Predictions.

namespace {
void scale(TeamWork& work, double factor) {
  for (double* number :
       {&work.seconds, &work.work, &work.serial, &work.few, &work.uneven, &work.meetings, &work.memory, &work.traffic})
    *number *= factor;
}
}  // namespace

TeamPrediction prediction(const TeamProfile& one, const TeamProfile& team, std::int64_t repetitions, bool by_module) {
  TeamPrediction found;
  found.machine = team.machine();
  found.repetitions = repetitions;
  const double each = 1 / static_cast<double>(repetitions);
  for (const TeamWork& work : one.works()) found.one += each * work.seconds;
  std::map<std::string, TeamWork> by_name;
  for (const TeamWork& work : team.works()) {
    const bool of_module = by_module && !work.op.starts_with('(');
    TeamWork& sum = by_name[of_module ? work.module : work.op];
    (of_module ? sum.module : sum.op) = of_module ? work.module : work.op;
    sum += work;
  }
  for (auto& [name, work] : by_name) {
    scale(work, each);
    found.seconds += work.seconds;
    found.works.push_back(work);
  }
  const int threads = found.machine.threads;
  std::ranges::stable_sort(found.works, std::greater<>(), [&](const TeamWork& work) { return work.lost(threads); });
  return found;
}

std::ostream& operator<<(std::ostream& out, const TeamPrediction& prediction) {
  constexpr std::size_t shown = 10;
  const TeamMachine& machine = prediction.machine;
  const double all = machine.threads * prediction.seconds;
  const auto number = [&](double value, int width, int decimals) -> std::ostream& {
    return out << std::fixed << std::setprecision(decimals) << std::setw(width) << value;
  };
  number(1e3 * prediction.seconds, 0, 3) << " ms on " << machine.threads << " threads, ";
  number(1e3 * prediction.one, 0, 3) << " ms on one: ";
  number(prediction.speed_up(), 0, 2) << " times as fast, efficiency ";
  number(prediction.efficiency(), 0, 2) << "\n";
  number(1e6 * meetings_of(machine).of(machine.threads), 0, 2) << " us per meeting, ";
  number(machine.bandwidth / 1e9, 0, 1) << " GB/s, cache " << (machine.cache >> 20) << " MiB\n";
  out << "   lost        ms    1 thread   loops  pieces  why\n";
  for (std::size_t i = 0; i < std::min(shown, prediction.works.size()); ++i) {
    const TeamWork& work = prediction.works[i];
    const double lost = work.lost(machine.threads);
    if (lost <= 0) break;
    const Loss largest = largest_loss(work, machine.threads);
    number(100 * lost / all, 5, 1) << " %";
    number(1e3 * work.seconds, 10, 3);
    number(1e3 * work.work, 12, 3);
    number(static_cast<double>(work.loops) / static_cast<double>(prediction.repetitions), 8, 0);
    number(work.loops > 0 ? static_cast<double>(work.pieces) / static_cast<double>(work.loops) : 0, 8, 0);
    out << "  " << (work.op.empty() ? work.module.empty() ? "(no module)" : work.module : work.op) << ": "
        << largest.name << " (";
    number(100 * largest.seconds / lost, 0, 0) << " %)\n";
  }
  return out;
}

}  // namespace xtape
