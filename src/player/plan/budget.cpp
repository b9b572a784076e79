// Searches for ways to play a plan in less memory, and rewrites plans to play in these ways.
#include "player/plan/budget.hpp"

#include <algorithm>

#include "player/plan/memory.hpp"

namespace xtape {

namespace {
/// Searches for ways to play a plan in less memory.
///
/// A descent starts from the plan that keeps everything, and lowers its peak in a series of targets. To meet a target,
/// it examines the contents that are kept across the peak but not used there. It drops the one with the largest ratio
/// of freed memory to time, where freed memory is the memory above an aim, summed over steps. Operands that are needed
/// to compute the content again are kept for longer, or dropped and computed again, too. Then the descent takes back
/// drops that the target does not need. Descents with several aims find different ways.
class Search {
 public:
  explicit Search(const StepGraph& graph) : graph_(graph) {}

  std::vector<Way> run() {
    for (const double aim : {1.0, 0.5, 0.75, 0.25, 0.0}) {
      if (work_ > enough_work) break;
      aim_ = aim;
      drops_.clear();
      make_schedule(graph_, drops_, now_);
      record(drops_);
      std::size_t lowest = now_.peak;
      for (int failed = 0; lowest > 0 && failed < 3;) {
        const std::size_t target = lowest - lowest / 20, reached = lower_peak_to(target);
        failed = reached <= target ? 0 : failed + 1;
        lowest = std::min(lowest, reached);
      }
    }
    return best_found();
  }

 private:
  /// Adds the way with these drops to the ways found.
  void record(const Drops& drops) {
    make_schedule(graph_, drops, trial_);
    found_.push_back({trial_.peak, trial_.seconds, drops});
  }

  /// Returns the ways that are faster than all ways with a lower peak.
  std::vector<Way> best_found() {
    std::ranges::stable_sort(found_, {}, [](const Way& way) { return std::pair(way.seconds, way.peak); });
    std::vector<Way> best;
    for (Way& way : found_)
      if (best.empty() || way.peak < best.back().peak) best.push_back(std::move(way));
    return best;
  }

  /// Returns the lowest peak on the way. The peak may rise for some drops before it falls.
  std::size_t lower_peak_to(std::size_t target) {
    const std::size_t patience = 32 + graph_.steps.size() / 8;
    std::size_t low = now_.peak;
    Drops lowest = drops_;
    for (std::size_t drops = 0; now_.peak > target && drops < patience && lower_highest(target); ++drops)
      if (now_.peak < low) {
        low = now_.peak;
        lowest = drops_;
        drops = 0;
      }
    record(lowest);
    take_back(std::max(target, now_.peak));
    return std::min(low, now_.peak);
  }

  /// Lowers the highest step by the best of the most promising drops. Returns false if none of them lowers it.
  bool lower_highest(std::size_t target) {
    constexpr int most_tries = 16;
    const auto aim = static_cast<std::size_t>(aim_ * static_cast<double>(target));
    const double before = above(now_, aim);
    const int stage = now_.executions[now_.peak_at].stage;
    double best = 0;
    Drops chosen, trial;
    int tries = 0;
    for (const int instance : candidates(aim)) {
      if (!chosen.empty() && (++tries > most_tries || work_ > most_work())) break;
      for (const bool deep : {false, true}) {
        trial = drops_;
        drop(instance, deep, trial);
        make_trial(trial);
        if (!trial_.possible || trial_.peaks[stage] >= now_.peaks[stage]) continue;
        const double freed = before - above(trial_, aim);
        const double ratio = freed > 0 ? freed / std::max(trial_.seconds - now_.seconds, tiny) : freed;
        if (!chosen.empty() && ratio <= best) continue;
        best = ratio;
        chosen = trial;
      }
    }
    if (chosen.empty()) return false;
    drops_ = std::move(chosen);
    make_schedule(graph_, drops_, now_);
    return true;
  }

  /// Returns the bytes above the aim, summed over the steps.
  static double above(const Schedule& schedule, std::size_t aim) {
    double sum = 0;
    for (const std::size_t peak : schedule.peaks)
      if (peak > aim) sum += static_cast<double>(peak - aim);
    return sum;
  }

  /// Returns the instances that are kept across the peak, those with the largest estimated ratio first.
  std::vector<int> candidates(std::size_t aim) {
    const int peak = now_.peak_at;
    std::vector<int> after(now_.instances.size(), -1);  // the first use after the peak
    before_.assign(now_.instances.size(), -1);
    latest_.assign(graph_.contents.size(), -1);
    for (int e = 0; e < static_cast<int>(now_.executions.size()); ++e)
      for (const int instance : now_.of(e)) {
        if (instance < 0) continue;
        if (e <= peak) {
          before_[instance] = e;
          latest_[now_.instances[instance].content] = instance;
        } else if (after[instance] < 0) {
          after[instance] = e;
        }
      }
    std::vector<std::size_t> high(now_.peaks.size() + 1, 0);  // per step: the number of earlier steps above the aim
    for (std::size_t s = 0; s < now_.peaks.size(); ++s) high[s + 1] = high[s] + (now_.peaks[s] > aim ? 1 : 0);
    std::vector<std::pair<double, int>> list;
    for (int i = 0; i < static_cast<int>(now_.instances.size()); ++i) {
      if (before_[i] < 0 || before_[i] == peak || after[i] < 0) continue;
      const int content = now_.instances[i].content;
      const int from = now_.executions[before_[i]].stage, to = now_.executions[after[i]].stage;
      if (!graph_.contents[content].repeatable || graph_.block(content).back() >= to) continue;
      const double gain = static_cast<double>(now_.instances[i].bytes) * static_cast<double>(high[to + 1] - high[from]);
      list.emplace_back(-gain / (seconds_of(content) + tiny), i);
    }
    std::ranges::sort(list);
    std::vector<int> instances;
    for (const auto& [ratio, instance] : list) instances.push_back(instance);
    return instances;
  }

  double seconds_of(int content) const {
    double sum = 0;
    for (const int step : graph_.block(content)) sum += graph_.steps[step].seconds;
    return sum;
  }

  /// Drops an instance after its last use before the peak. With `deep`, also drops the operands from which it is
  /// computed again and that are not kept across the peak, and their operands.
  void drop(int instance, bool deep, Drops& to) const {
    const Execution& use = now_.executions[before_[instance]];
    const Drop choice{use.stage, use.step, now_.instances[instance].content};
    const auto at = std::ranges::lower_bound(to, choice);
    if (at != to.end() && *at == choice) return;
    to.insert(at, choice);
    if (!deep) return;
    for (const int step : graph_.block(choice.content))
      for (const int operand : graph_.steps[step].in)
        if (const int latest = latest_[operand];
            latest >= 0 && graph_.contents[operand].repeatable && now_.instances[latest].last <= now_.peak_at)
          drop(latest, deep, to);
  }

  /// Takes back drops that the limit does not need, slowest first.
  void take_back(std::size_t limit) {
    Drops all = drops_;
    std::ranges::stable_sort(all, std::greater<>(), [&](const Drop& each) { return seconds_of(each.content); });
    for (const Drop& each : all) {
      if (work_ > most_work()) break;
      Drops without = drops_;
      std::erase(without, each);
      make_trial(without);
      if (!trial_.possible || trial_.peak > limit || trial_.seconds > now_.seconds) continue;
      std::swap(now_, trial_);
      drops_ = std::move(without);
    }
    record(drops_);
  }

  void make_trial(const Drops& drops) {
    make_schedule(graph_, drops, trial_);
    work_ += static_cast<double>(trial_.operands.size());
  }
  // Limits of the effort, in operands of schedules. 3e8 operands take about a second.

  static constexpr double enough_work = 4e7;  // no descent begins after it
  double most_work() const { return std::max(2.2e8, 8e3 * static_cast<double>(graph_.steps.size())); }

  static constexpr double tiny = 1e-12;
  const StepGraph& graph_;
  double aim_ = 1;  // the aim, as a share of the target
  Drops drops_;
  Schedule now_, trial_;
  std::vector<int> before_;  // per instance: its last use up to the peak
  std::vector<int> latest_;  // per content: its last instance up to the peak
  std::vector<Way> found_;
  double work_ = 0;
};

/// Returns ways from the fastest, which repeats nothing, to the one with the lowest peak. Each way is slower than the
/// one before it and has a lower peak. The ways depend only on the graph.
std::vector<Way> find_ways(const StepGraph& graph) {
  return Search(graph).run();
}

/// The steps of a plan, and the arena sizes of the ways to play them.
class Budget {
 public:
  explicit Budget(PlannedProgram& planned) : planned_(planned), outside_(bytes_outside(planned)), graph_(planned) {}

  const StepGraph& graph() const { return graph_; }

  /// Returns the memory and the time of a way.
  MemoryPoint point(const Way& way) {
    make_schedule(graph_, way.drops, schedule_);
    const std::size_t arena = assign_offsets(schedule_.lifetimes(), true).total;
    double seconds = schedule_.seconds;
    for (const StepUse& use : graph_.steps) seconds += use.seconds;
    return {arena + outside_, arena, seconds,
            static_cast<std::int64_t>(schedule_.executions.size() - graph_.steps.size())};
  }

  /// Changes the plan to the first of the ways that needs at most `memory` bytes. Returns whether there is one.
  bool fit(const std::vector<Way>& ways, std::size_t memory) {
    const std::size_t room = memory - std::min(memory, outside_);
    for (const Way& way : ways) {
      make_schedule(graph_, way.drops, schedule_);
      if (memory < outside_ || !schedule_.possible || schedule_.peak > room) continue;
      if (assign_offsets(schedule_.lifetimes(), true, room).total > room) continue;
      rewrite();
      return true;
    }
    return false;
  }

  /// Throws LimitError, which states the memory that the smallest way needs.
  [[noreturn]] void too_small(const std::vector<Way>& ways, std::size_t memory) {
    const auto bytes_of = [&](const Way& way) { return point(way).bytes; };
    const std::size_t least = bytes_of(*std::ranges::min_element(ways, {}, bytes_of));
    std::string most;
    const auto highest = std::ranges::find(ways, least, bytes_of);  // makes its schedule again
    if (highest != ways.end() && schedule_.peak > 0)
      most = bytes_text(least - outside_) + " at " +
             described(planned_, planned_.steps[schedule_.executions[schedule_.peak_at].step]);
    throw LimitError("the plan needs at least " + exact_text(least) + ", but its memory limit is " +
                         exact_text(memory) + ": " + bytes_text(outside_) +
                         " for parameters, outputs, carries and inputs" + (most.empty() ? "" : ", and " + most),
                     least, most);
  }

 private:
  static std::string exact_text(std::size_t bytes) {
    return bytes < 1024 ? bytes_text(bytes) : bytes_text(bytes) + " (" + std::to_string(bytes) + " bytes)";
  }

  /// Replaces the steps of the plan by those of the schedule, and its arena buffers by new buffers.
  void rewrite() {
    for (Buffer& buffer : planned_.buffers) buffer.first = buffer.last = -1;
    const int first = static_cast<int>(planned_.buffers.size());
    for (const Instance& instance : schedule_.instances) {
      Buffer& buffer = planned_.buffers.emplace_back();
      if (instance.content >= 0) buffer = graph_.contents[instance.content].held;
    }
    const std::vector<PlannedStep> steps = std::move(planned_.steps);
    const std::vector<BufferRef> operands = std::move(planned_.operands);
    planned_.steps.clear();
    planned_.operands.clear();
    for (const Execution& execution : schedule_.executions) {
      PlannedStep step = steps[execution.step];
      step.again = execution.step != execution.stage;
      for (std::size_t k = 0; k < std::size_t{step.inputs} + step.outputs; ++k) {
        BufferRef ref = operands[step.first + k];
        if (const int instance = schedule_.operands[execution.first + k]; instance >= 0)
          ref.buffer = first + schedule_.instances[instance].place;
        planned_.operands.push_back(ref);
      }
      step.first = planned_.operands.size() - step.inputs - step.outputs;
      if (execution.scratch >= 0) {
        step.scratch = first + execution.scratch;
        Buffer& buffer = planned_.buffers[step.scratch];
        buffer.of = {step.node, 0};
        buffer.role = Buffer::Role::scratch;
        buffer.bytes = schedule_.instances[execution.scratch].bytes;
      }
      planned_.steps.push_back(std::move(step));
    }
  }

  PlannedProgram& planned_;
  std::size_t outside_;
  StepGraph graph_;
  Schedule schedule_;
};
}  // namespace

std::vector<Way>& KnownWays::of(const StepGraph& graph) {
  std::vector<int> structure;  // everything that determines which drops are possible
  for (const StepUse& use : graph.steps)
    for (const std::vector<int>& list : {use.in, use.out}) {
      structure.push_back(static_cast<int>(list.size()));
      structure.insert(structure.end(), list.begin(), list.end());
    }
  for (const Content& content : graph.contents)
    structure.insert(structure.end(), {content.in_arena ? 1 : 0, content.repeatable ? 1 : 0, content.until});
  return ways_[structure];
}

std::size_t bytes_outside(const PlannedProgram& planned) {
  std::size_t sum = 0;
  for (const Buffer& buffer : planned.buffers)
    if (buffer.counts() && buffer.kind != BufferKind::arena) sum += buffer.bytes;
  return sum;
}

void fit_memory(PlannedProgram& planned, std::size_t memory, KnownWays& known) {
  constexpr std::size_t most_known = 2000;
  Budget budget(planned);
  std::vector<Way>& ways = known.of(budget.graph());
  if (budget.fit(ways, memory)) return;
  const std::vector<Way> found = find_ways(budget.graph());
  ++known.searches;
  ways.insert(ways.begin(), found.begin(), found.end());
  if (ways.size() > most_known) ways.resize(most_known);
  if (!budget.fit(found, memory)) budget.too_small(found, memory);
}

std::vector<MemoryPoint> memory_curve(PlannedProgram planned) {
  Budget budget(planned);
  std::vector<MemoryPoint> curve;
  for (const Way& way : find_ways(budget.graph())) {
    MemoryPoint point = budget.point(way);
    if (way.drops.empty() && planned.arena_bytes < point.arena_bytes) {  // the plan without any repetition
      point.bytes -= point.arena_bytes - planned.arena_bytes;
      point.arena_bytes = planned.arena_bytes;
    }
    if (curve.empty() || point.bytes < curve.back().bytes) curve.push_back(point);
  }
  return curve;
}

}  // namespace xtape
