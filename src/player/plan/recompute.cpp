// Searches for ways to play a plan in less memory.
//
// The search starts from the plan that keeps everything, and lowers its peak in a series of targets. To meet a target,
// it examines the contents that are kept across the peak but not used there. For each such content it tries several
// ways to compute the content again before its next use: with the inputs kept, or with the inputs computed again too.
// It takes the variant with the largest ratio of freed memory to time, where freed memory is the memory above the
// target, summed over steps. Then it takes back choices that the target does not need.
#include <algorithm>
#include <map>

#include "player/plan/budget.hpp"

namespace xtape {

namespace {
constexpr double tiny = 1e-12;

class Search {
 public:
  explicit Search(const StepGraph& graph) : graph_(graph), scheduler_(graph) {
    for (const StepUse& use : graph.steps) graph_size_ += static_cast<double>(use.in.size() + use.out.size());
  }

  std::vector<Way> run() {
    start();
    const std::size_t top = now_.peak;
    while (now_.peak > 0 && lower_peak_to(now_.peak - now_.peak / 28)) continue;
    const std::size_t part = (top - now_.peak) / 8;
    // Each start ignores the choices made for higher targets. The first starts have targets below the lowest peak.
    for (std::size_t i = 11; i > 0; --i) {
      start();
      peak_only_ = i % 2 == 0;
      lower_peak_to(top - std::min(top, part * i));
    }
    return best_found();
  }

 private:
  void start() {
    choices_.clear();
    scheduler_.make(choices_, now_);
    record_way();
  }
  void record_way() { found_.push_back({now_.peak, now_.seconds, choices_}); }

  /// Returns the ways that are faster than all ways with a lower peak.
  std::vector<Way> best_found() {
    std::stable_sort(found_.begin(), found_.end(), [](const Way& a, const Way& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.peak < b.peak;
    });
    std::vector<Way> best;
    for (Way& way : found_)
      if (best.empty() || way.peak < best.back().peak) best.push_back(std::move(way));
    return best;
  }

  /// Returns whether the peak is at most `target` now.
  bool lower_peak_to(std::size_t target) {
    ratios_.clear();
    while (now_.peak > target && improve(target)) continue;
    take_back(std::max(target, now_.peak));
    return now_.peak <= target;
  }

  /// Returns the bytes above the target, summed over the steps. With `peak_only_`, returns only those of the highest
  /// step.
  double excess(const Schedule& schedule, std::size_t target) const {
    if (peak_only_) return static_cast<double>(schedule.peak) - static_cast<double>(target);
    double sum = 0;
    for (const std::size_t peak : schedule.peaks)
      if (peak > target) sum += static_cast<double>(peak - target);
    return sum;
  }

  /// Makes the best choice. Returns whether there is one.
  bool improve(std::size_t target) {
    constexpr double hopeful = 1.3;
    const double before = excess(now_, target);
    const auto stage = static_cast<std::size_t>(now_.executions[now_.peak_at].stage);
    const bool estimated = !ratios_.empty();
    double best = 0;
    Recomputations chosen, trial, last;
    for (const auto& [most, choice] : candidates(target)) {
      if (most <= best || work_ > most_work()) break;
      find_available(choice.step);
      double& known = ratios_[choice] = 0;
      for (const bool keep : {true, false})
        for (const int depth : {0, 1, 2, 1000}) {
          trial = choices_;
          add(choice, depth, keep, trial);
          if (trial == last) continue;
          last = trial;
          make_trial(trial);
          const double ratio = (before - excess(trial_, target)) / std::max(trial_.seconds - now_.seconds, tiny);
          if (!trial_.possible || trial_.peaks[stage] >= now_.peaks[stage]) continue;
          known = std::max(known, hopeful * ratio);
          if (ratio <= best) continue;
          best = ratio;
          chosen = trial;
        }
    }
    if (best == 0) {  // the estimates may be too old
      ratios_.clear();
      return estimated && improve(target);
    }
    choices_ = chosen;
    scheduler_.make(choices_, now_);
    record_way();
    return true;
  }

  /// Returns the contents that are kept across the peak, with an estimate of their largest ratio.
  std::vector<std::pair<double, Recomputation>> candidates(std::size_t target) const {
    const int peak = now_.peak_at;
    // per instance: the last use up to the peak, and the first use after the peak
    std::vector<int> before(now_.instances.size(), -1), after(now_.instances.size(), -1);
    for (int e = 0; e < static_cast<int>(now_.executions.size()); ++e) {
      const Execution& execution = now_.executions[e];
      const StepUse& use = graph_.steps[execution.step];
      for (std::size_t k = execution.first; k < execution.first + use.in.size() + use.out.size(); ++k)
        if (const int instance = now_.operands[k]; instance >= 0) {
          if (e <= peak)
            before[instance] = e;
          else if (after[instance] < 0)
            after[instance] = e;
        }
    }
    std::vector<std::size_t> above(now_.peaks.size() + 1, 0);  // per step: the number of earlier steps above the target
    for (std::size_t s = 0; s < now_.peaks.size(); ++s) above[s + 1] = above[s] + (now_.peaks[s] > target ? 1 : 0);
    std::map<Recomputation, double> gains;
    for (std::size_t i = 0; i < now_.instances.size(); ++i) {
      if (before[i] < 0 || before[i] == peak || after[i] < 0) continue;
      const int c = now_.instances[i].content;
      const int from = now_.executions[before[i]].stage, use = now_.executions[after[i]].stage;
      if (use != now_.executions[peak].stage && can_repeat(c, use))
        gains[{use, block_of(c)}] +=
            static_cast<double>(now_.instances[i].bytes) * static_cast<double>(above[use + 1] - above[from]);
    }
    std::vector<std::pair<double, Recomputation>> list;
    for (const auto& [choice, gain] : gains) {
      const auto known = ratios_.find(choice);
      const double most = gain / (seconds_of(choice) + tiny);
      list.emplace_back(known == ratios_.end() ? most : std::min(most, known->second), choice);
    }
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return list;
  }

  int block_of(int c) const { return graph_.block_of[graph_.contents[c].writers.back()]; }
  bool can_repeat(int c, int step) const { return graph_.contents[c].repeatable && block_of(c) < step; }
  double seconds_of(const Recomputation& choice) const {
    double sum = 0;
    for (const int writer : graph_.blocks[choice.block]) sum += graph_.steps[writer].seconds;
    return sum;
  }
  void find_available(int step) {
    is_available_.assign(graph_.contents.size(), 0);
    for (const Instance& instance : now_.instances)
      if (instance.content >= 0 && now_.executions[instance.first].stage < step &&
          now_.executions[instance.last].stage >= step)
        is_available_[instance.content] = 1;
  }

  /// Adds a recomputation, and those of missing inputs up to `depth` levels deep. With `keep`, the contents then stay
  /// for their next uses.
  void add(Recomputation choice, int depth, bool keep, Recomputations& to) const {
    auto at = std::lower_bound(to.begin(), to.end(), choice);
    if (at != to.end() && *at == choice) return;
    at = to.insert(at, choice);
    if (keep)
      if (const auto next =
              std::find_if(at + 1, to.end(), [&](const auto& each) { return each.block == choice.block; });
          next != to.end())
        to.erase(next);
    if (depth == 0) return;
    for (const int writer : graph_.blocks[choice.block])
      for (const int input : graph_.steps[writer].in)
        if (can_repeat(input, choice.step) && !is_available_[input])
          add({choice.step, block_of(input)}, depth - 1, keep, to);
  }

  /// Takes back choices that the limit does not need, slowest first.
  void take_back(std::size_t limit) {
    Recomputations all = choices_;
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return seconds_of(a) > seconds_of(b); });
    for (const Recomputation& each : all) {
      if (work_ > most_work()) break;
      Recomputations without = choices_;
      std::erase(without, each);
      make_trial(without);
      if (!trial_.possible || trial_.peak > limit || trial_.seconds > now_.seconds) continue;
      std::swap(now_, trial_);
      choices_ = std::move(without);
    }
    record_way();
  }

  void make_trial(const Recomputations& choices) {
    scheduler_.make(choices, trial_);
    work_ += graph_size_ + static_cast<double>(trial_.operands.size());
  }
  /// The limit of the effort, in operands of schedules. 3e8 operands take about a second.
  double most_work() const { return std::max(2.2e8, 4e3 * graph_size_); }

  const StepGraph& graph_;
  Scheduler scheduler_;
  Recomputations choices_;
  Schedule now_, trial_;
  bool peak_only_ = false;
  std::map<Recomputation, double> ratios_;  // upper estimates, from the last time that the choice was tried
  std::vector<char> is_available_;
  std::vector<Way> found_;
  double graph_size_ = 1, work_ = 0;
};
}  // namespace

std::vector<Way> find_ways(const StepGraph& graph) {
  return Search(graph).run();
}

}  // namespace xtape
