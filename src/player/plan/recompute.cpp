// Searches for ways to play a plan in less memory.
//
// The search starts from the plan that keeps everything, and lowers its peak in a series of targets. To meet a target,
// it examines the contents that are kept across the peak but not used there. For each such content it tries several
// ways to compute the content again before its next use: with the inputs kept, or with the inputs computed again too.
// It takes the variant with the largest ratio of freed memory to time, where freed memory is the memory above the
// target, summed over steps. At the end it takes back choices that the target does not need.
#include <algorithm>
#include <array>
#include <map>

#include "player/plan/budget.hpp"

namespace xtape {

namespace {
class Search {
 public:
  explicit Search(const StepGraph& graph) : graph_(graph), scheduler_(graph), choices_(graph), graph_size_(1) {
    for (const StepUse& use : graph.steps) graph_size_ += use.reads.size() + use.writes.size();
    // The limit of the effort, in operands of schedules. 3e8 operands take about a second. Small graphs need less
    // effort, large ones more.
    const double size = 2 * static_cast<double>(graph_size_);
    most_work_ = std::max(std::min(size * 8e4, 3e8), size * 2e3);
    scheduler_.make(choices_, now_);
    record_way();
  }

  std::vector<Way> run() {
    const std::size_t top = now_.peak, bottom = least_peak();
    const std::size_t count = levels();
    for (std::size_t level = 1; level <= count; ++level) lower_peak_to(top - (top - bottom) / count * level);
    // each start ignores the choices made for higher targets
    for (std::size_t start = 1; start <= fresh_starts; ++start) {
      choices_ = Recomputations(graph_);
      scheduler_.make(choices_, now_);
      peak_only_ = start % 2 == 0;
      lower_peak_to(top - (top - bottom) / (fresh_starts + 1) * start);
    }
    for (const bool pairs : {false, true}) {
      keep_best();
      for (const Way& way : std::vector<Way>(found_)) refine(way, pairs);
    }
    keep_best();
    return std::move(found_);
  }

 private:
  static constexpr std::size_t fresh_starts = 8;

  std::size_t levels() const { return graph_.steps.size() < 1000 ? 32 : 8; }

  /// Returns the arena bytes that the step with the largest operands needs. No way has a lower peak.
  std::size_t least_peak() const {
    std::size_t most = 0;
    for (const StepUse& use : graph_.steps) {
      std::size_t sum = use.scratch;
      for (const int c : use.reads) sum += bytes_of(c);
      for (const int c : use.writes)
        if (std::find(use.reads.begin(), use.reads.end(), c) == use.reads.end() && use.takes.empty())
          sum += bytes_of(c);
      most = std::max(most, sum);
    }
    return most;
  }

  std::size_t bytes_of(int c) const {
    const Content& content = graph_.contents[c];
    return content.in_arena ? content.bytes : 0;
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

  /// Adds the current way to the ways found, if it is possible.
  void record_way() {
    if (now_.possible) found_.push_back({now_.peak, now_.seconds, choices_.list()});
  }

  /// A content that is kept across the peak, and the next step that uses it.
  struct Candidate {
    Recomputation choice;
    double most = 0;  // an estimate of the largest ratio that the candidate can reach
  };

  std::vector<Candidate> candidates(std::size_t target) {
    const int peak = now_.peak_at;
    const int stage = now_.executions[peak].stage;
    // per instance: the last use up to the peak, and the first use after the peak
    std::vector<int> before(now_.instances.size(), -1), after(now_.instances.size(), -1);
    for (std::size_t e = 0; e < now_.executions.size(); ++e)
      for (int u = now_.executions[e].first_use; u < now_.executions[e].end_use; ++u) {
        const int instance = now_.uses[u].instance;
        if (instance < 0) continue;
        if (static_cast<int>(e) <= peak)
          before[instance] = static_cast<int>(e);
        else if (after[instance] < 0)
          after[instance] = static_cast<int>(e);
      }
    std::vector<std::size_t> above(now_.peaks.size() + 1, 0);  // per step: the number of earlier steps above the target
    for (std::size_t s = 0; s < now_.peaks.size(); ++s) above[s + 1] = above[s] + (now_.peaks[s] > target ? 1 : 0);
    std::vector<Candidate> list;
    for (std::size_t i = 0; i < now_.instances.size(); ++i) {
      if (before[i] < 0 || before[i] == peak || after[i] < 0) continue;
      const int c = now_.instances[i].content;
      const int use = now_.executions[after[i]].stage;
      if (use == stage || !can_repeat(c, use) || is_banned({use, c})) continue;
      const int from = now_.executions[before[i]].stage;
      const double gain = static_cast<double>(bytes_of(c)) * static_cast<double>(above[use + 1] - above[from]);
      const auto known = ratios_.find({use, c});
      list.push_back(
          {{use, c}, std::min(gain / (seconds_of(c) + tiny), known == ratios_.end() ? 1e300 : known->second)});
    }
    std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) { return a.most > b.most; });
    return list;
  }

  bool can_repeat(int c, int step) const {
    const Content& content = graph_.contents[c];
    return content.in_arena && content.repeatable && content.writers.back() < step;
  }
  double seconds_of(int c) const {
    double sum = 0;
    for (const int writer : graph_.contents[c].writers) sum += graph_.steps[writer].seconds;
    return sum;
  }

  /// Searches for faster ways with at most this peak, until neither value of `peak_only_` yields one.
  void refine(const Way& way, bool pairs) {
    Way best = way;
    for (int failed = 0; failed < 2;) failed = refine_once(way.peak, best, pairs) ? 0 : failed + 1;
  }

  /// Takes back one choice (two with `pairs`) and meets the peak with other choices. Returns whether this way is
  /// faster. A faster way becomes `best`.
  bool refine_once(std::size_t limit, Way& best, bool pairs) {
    peak_only_ = !peak_only_;
    const std::vector<Recomputation> all = by_seconds(best.choices);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = pairs ? i + 1 : i; k < (pairs ? all.size() : i + 1); ++k) {
        if (work_ > most_work_) return false;
        banned_ = {all[i], all[k]};
        if (improves(limit, best)) return true;
      }
    return false;
  }

  /// Returns whether there is a faster way without the banned choices. A faster way becomes `best`.
  bool improves(std::size_t limit, Way& best) {
    choices_ = Recomputations(graph_);
    flip(best.choices);
    choices_.flip(banned_[0]);
    if (choices_.has(banned_[1])) choices_.flip(banned_[1]);
    scheduler_.make(choices_, now_);
    if (!now_.possible) return false;
    ratios_.clear();
    while (now_.peak > limit && now_.seconds < best.seconds && improve(limit)) {
    }
    if (now_.peak > limit) return false;
    take_back(limit);
    if (now_.seconds >= best.seconds) return false;
    best = {now_.peak, now_.seconds, choices_.list()};
    return true;
  }

  bool is_banned(Recomputation choice) const {
    return std::any_of(banned_.begin(), banned_.end(), [&](const Recomputation& each) {
      return each.step == choice.step && each.content == choice.content;
    });
  }

  std::vector<Recomputation> by_seconds(std::vector<Recomputation> choices) const {
    std::stable_sort(choices.begin(), choices.end(), [&](const Recomputation& a, const Recomputation& b) {
      return seconds_of(a.content) > seconds_of(b.content);
    });
    return choices;
  }

  /// Collects the choices to flip: the recomputation of the content, and of its missing inputs, up to `depth` levels
  /// deep. With `keep`, these inputs then stay for their next uses. With `together`, all results of a step are computed
  /// again if one of them is.
  void variant(Recomputation choice, int depth, bool keep, bool together, std::vector<Recomputation>& flips) const {
    if (choices_.has(choice) || std::any_of(flips.begin(), flips.end(), [&](const Recomputation& each) {
          return each.step == choice.step && each.content == choice.content;
        }))
      return;
    flips.push_back(choice);
    if (keep)
      if (const Recomputation next = choices_.next(choice.content, choice.step); next.content >= 0)
        flips.push_back(next);
    const std::vector<int>& writers = graph_.contents[choice.content].writers;
    if (together)
      for (const int twin : graph_.steps[writers[0]].writes)
        if (can_repeat(twin, choice.step) && is_available_[twin]) variant({choice.step, twin}, 0, keep, false, flips);
    if (depth == 0) return;
    for (const int writer : writers)
      for (const int input : graph_.steps[writer].reads)
        if (input != choice.content && can_repeat(input, choice.step) && !is_available_[input])
          variant({choice.step, input}, depth - 1, keep, together, flips);
  }

  void find_available(int step) {
    is_available_.assign(graph_.contents.size(), 0);
    for (const Instance& instance : now_.instances)
      if (now_.executions[instance.first].stage < step && now_.executions[instance.last].stage >= step)
        is_available_[instance.content] = 1;
  }

  void flip(const std::vector<Recomputation>& flips) {
    for (const Recomputation& each : flips) choices_.flip(each);
  }

  void lower_peak_to(std::size_t target) {
    ratios_.clear();
    while (now_.peak > target && improve(target)) {
    }
    take_back(std::max(target, now_.peak));
  }

  /// Recomputations to flip together, and their ratio: the memory above the target that they free, divided by the time
  /// that they take.
  struct Move {
    std::vector<Recomputation> flips;
    double ratio = 0;
  };

  /// Tries the flips. Returns their ratio, or 0 if they do not lower the peak.
  double ratio_of(const std::vector<Recomputation>& flips, std::size_t target, double before) {
    flip(flips);
    make_trial();
    flip(flips);
    const auto stage = static_cast<std::size_t>(now_.executions[now_.peak_at].stage);
    if (!trial_.possible || trial_.peaks[stage] >= now_.peaks[stage]) return 0;
    return (before - excess(trial_, target)) / std::max(trial_.seconds - now_.seconds, tiny);
  }

  /// Returns the best variant for a candidate.
  Move best_move(const Candidate& candidate, std::size_t target, double before) {
    find_available(candidate.choice.step);
    Move best;
    std::vector<Recomputation> flips;
    std::size_t last = 0;
    for (const bool keep : {true, false})
      for (const bool together : {false, true})
        for (const int depth : {0, 1, 2, 1000}) {
          flips.clear();
          variant(candidate.choice, depth, keep, together, flips);
          if (flips.size() == last) continue;  // the same flips as for the variant before
          last = flips.size();
          if (const double ratio = ratio_of(flips, target, before); ratio > best.ratio) best = {flips, ratio};
        }
    return best;
  }

  /// Makes the best move and other moves that are nearly as good. Returns whether it has made a move.
  bool improve(std::size_t target) {
    constexpr double nearly = 0.95, hopeful = 1.3;
    const double before = excess(now_, target);
    std::vector<Move> moves;
    double best = 0;
    const bool estimated = !ratios_.empty();
    for (const Candidate& candidate : candidates(target)) {
      if (candidate.most <= nearly * best || work_ > most_work_) break;
      moves.push_back(best_move(candidate, target, before));
      best = std::max(best, moves.back().ratio);
      ratios_[{candidate.choice.step, candidate.choice.content}] = hopeful * moves.back().ratio;
    }
    if (best == 0 && estimated) {  // the estimates may be too old
      ratios_.clear();
      return improve(target);
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.ratio > b.ratio; });
    bool first = true;
    for (const Move& move : moves) {
      if (move.ratio <= 0 || move.ratio < nearly * best || now_.peak <= target) break;
      if (!first && ratio_of(move.flips, target, excess(now_, target)) < nearly * best) continue;
      flip(move.flips);
      scheduler_.make(choices_, now_);
      record_way();
      first = false;
    }
    return !first;
  }

  /// Takes back choices that the limit does not need, slowest first.
  void take_back(std::size_t limit) {
    for (const Recomputation& each : by_seconds(choices_.list())) {
      if (work_ > most_work_) break;
      choices_.flip(each);
      make_trial();
      if (trial_.possible && trial_.peak <= limit && trial_.seconds <= now_.seconds)
        std::swap(now_, trial_);
      else
        choices_.flip(each);
    }
    record_way();
  }

  void make_trial() {
    scheduler_.make(choices_, trial_);
    work_ += static_cast<double>(graph_size_ + trial_.uses.size());
  }

  /// Removes a way unless it is faster than all ways with a lower peak.
  void keep_best() {
    std::stable_sort(found_.begin(), found_.end(), [](const Way& a, const Way& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.peak < b.peak;
    });
    std::vector<Way> best;
    for (Way& way : found_)
      if (best.empty() || way.peak < best.back().peak) best.push_back(std::move(way));
    found_ = std::move(best);
  }

  static constexpr double tiny = 1e-12;
  const StepGraph& graph_;
  Scheduler scheduler_;
  Recomputations choices_;
  Schedule now_, trial_;
  bool peak_only_ = false;
  std::map<std::pair<int, int>, double> ratios_;  // by step and content: an upper estimate of the ratio
  std::vector<char> is_available_;
  // choices that the search must not make
  std::array<Recomputation, 2> banned_{Recomputation{-1, -1}, Recomputation{-1, -1}};
  std::vector<Way> found_;
  std::size_t graph_size_;
  double work_ = 0, most_work_ = 0;
};
}  // namespace

std::vector<Way> find_ways(const StepGraph& graph) {
  return Search(graph).run();
}

void KnownWays::add(const StepGraph& graph, std::vector<Way> ways) {
  constexpr std::size_t most = 8;
  std::vector<std::vector<Way>>& known = ways_[structure_of(graph)];
  known.insert(known.begin(), std::move(ways));
  ++searches_;
  if (known.size() > most) known.pop_back();
}

/// Returns everything in the graph that determines which choices are possible.
std::vector<int> KnownWays::structure_of(const StepGraph& graph) {
  std::vector<int> structure{static_cast<int>(graph.steps.size())};
  for (const StepUse& use : graph.steps)
    for (const std::vector<int>& list : {use.reads, use.writes}) {
      structure.push_back(static_cast<int>(list.size()));
      structure.insert(structure.end(), list.begin(), list.end());
    }
  for (const Content& content : graph.contents)
    structure.insert(structure.end(), {content.in_arena ? 1 : 0, content.repeatable ? 1 : 0, content.until});
  return structure;
}

}  // namespace xtape
