#include "base/threads/simulated_team.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <queue>
#include <utility>

#include "base/threads/activity.hpp"

namespace xtape {

namespace {
thread_local SimulatedTeam* simulating = nullptr;

/// Returns the processor time of the calling thread in seconds. Takes a system call, in contrast to seconds_now().
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
}  // namespace

TeamTimes& TeamTimes::operator+=(const TeamTimes& other) {
  seconds += other.seconds;
  work += other.work;
  serial += other.serial;
  few += other.few;
  uneven += other.uneven;
  meetings += other.meetings;
  regions += other.regions;
  pieces += other.pieces;
  return *this;
}

bool WorkTimes::add(const WorkTimes& other) {
  const auto same = [](const RegionTimes& a, const RegionTimes& b) {
    return a.ends == b.ends && a.threads == b.threads;
  };
  if (!std::ranges::equal(regions, other.regions, same)) return false;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    RegionTimes& to = regions[i];
    const RegionTimes& from = other.regions[i];
    for (std::size_t k = 0; k < to.shortest.size(); ++k) to.shortest[k] = std::min(to.shortest[k], from.shortest[k]);
    to.all += from.all;
    to.awake = std::max(to.awake, from.awake);
  }
  serial += other.serial;
  executions += other.executions;
  return true;
}

double makespan(std::span<const double> pieces, std::span<const std::size_t> ends, std::span<const double> begins) {
  const std::size_t ranges = ends.size();
  std::vector<std::size_t> next(ranges);  // the next piece of each range
  for (std::size_t i = 1; i < ranges; ++i) next[i] = ends[i - 1];
  struct Worker {
    double free;            // when the worker takes its next piece
    std::size_t number;     // its number
    std::size_t range = 0;  // the number of ranges in which it has found no piece
    bool operator>(const Worker& other) const { return std::pair(free, number) > std::pair(other.free, other.number); }
  };
  std::priority_queue<Worker, std::vector<Worker>, std::greater<>> workers;
  for (std::size_t i = 0; i < begins.size(); ++i) workers.push({begins[i], i});
  double end = 0;
  for (std::size_t taken = 0; taken < pieces.size();) {
    Worker worker = workers.top();
    workers.pop();
    const auto range = [&] { return (worker.number + worker.range) % ranges; };
    while (worker.range < ranges && next[range()] == ends[range()]) ++worker.range;
    if (worker.range == ranges) continue;  // there is no work left for it
    worker.free += pieces[next[range()]++];
    ++taken;
    end = std::max(end, worker.free);
    workers.push(worker);
  }
  return end;
}

namespace {
/// Returns when each worker begins its first piece.
std::vector<double> begins_of(const RegionTimes& region, const Meetings& meetings) {
  const int asleep = region.threads - region.awake;
  std::vector<double> begins{asleep * meetings.waking};  // the caller
  for (int worker = 1; worker < region.threads; ++worker) {
    const int woken = worker - region.awake;  // workers that are woken before it
    begins.push_back(meetings.of(region.threads) + (woken < 0 ? 0 : (woken + 1) * meetings.waking + meetings.rising));
  }
  return begins;
}
}  // namespace

TeamTimes times_of(const RegionTimes& region, std::int64_t executions, const Meetings& meetings) {
  const auto count = static_cast<double>(region.shortest.size());
  const double sum = region.all / static_cast<double>(executions);
  const double shortest = std::accumulate(region.shortest.begin(), region.shortest.end(), 0.0);
  std::vector<double> pieces = region.shortest;
  for (double& piece : pieces) piece = shortest > 0 ? piece * sum / shortest : sum / count;
  const std::vector<double> at_once(static_cast<std::size_t>(region.threads));
  const double apart = makespan(pieces, region.ends, begins_of(region, meetings));
  const double together = makespan(pieces, region.ends, at_once);
  const double equal = std::min(together, std::ceil(count / region.threads) * sum / count);  // if all pieces were equal
  return {.seconds = apart,
          .work = sum,
          .few = equal - sum / meetings.threads,
          .uneven = together - equal,
          .meetings = apart - together,
          .regions = 1,
          .pieces = std::ssize(pieces)};
}

TeamTimes times_of(const WorkTimes& work, const Meetings& meetings) {
  TeamTimes times;
  times.serial = times.work = times.seconds = work.serial / static_cast<double>(work.executions);
  for (const RegionTimes& region : work.regions) times += times_of(region, work.executions, meetings);
  return times;
}

SimulatedTeam::SimulatedTeam(const Meetings& meetings)
    : meetings_(meetings),
      outer_(simulating),
      wall_(seconds_now()),
      processor_(processor_seconds()),
      last_(wall_),
      idle_(static_cast<std::size_t>(std::max(1, meetings.threads))) {
  simulating = this;
}
SimulatedTeam::~SimulatedTeam() {
  simulating = outer_;
}
SimulatedTeam* SimulatedTeam::current() {
  return simulating;
}

void SimulatedTeam::run_pieces(const Division& division, const void* context,
                               void (*body)(const void* context, std::int64_t begin, std::int64_t finish,
                                            std::int64_t worker)) {
  const Alone alone;
  begin_region();
  for (std::int64_t range = 0; range < division.ranges; ++range) {
    const std::int64_t end = division.end(range);
    for (std::int64_t begin = division.begin(range); begin < end; begin += division.piece) {
      body(context, begin, std::min(end, begin + division.piece), range);
      end_piece();
    }
    end_range();
  }
  end_region(division.threads());
}

void SimulatedTeam::run_each(int threads, std::int64_t count, const void* context,
                             void (*body)(const void* context, std::int64_t index)) {
  const Alone alone;
  begin_region();
  for (std::int64_t i = 0; i < count; ++i) {
    body(context, i);
    end_piece();
  }
  end_range();
  end_region(static_cast<int>(std::min<std::int64_t>(threads, count)));
}

double SimulatedTeam::now() {
  constexpr double shortest_wait = 3e-4;  // systems give a core to another thread for longer
  const double wall = seconds_now();
  if (wall - wall_ > shortest_wait) {
    const double processor = processor_seconds();
    waited_ += std::max(0.0, (wall - wall_) - (processor - processor_));
    wall_ = wall;
    processor_ = processor;
  }
  return wall - waited_;
}

/// Adds serial code, during which no helper has work.
void SimulatedTeam::add_serial(double seconds) {
  work_.serial += seconds;
  for (double& idle : idle_) idle += seconds;
}

void SimulatedTeam::begin_region() {
  pieces_.clear();
  ends_.clear();
  const double start = now();
  add_serial(start - last_);
  last_ = start;
}

void SimulatedTeam::end_piece() {
  const double end = now();
  pieces_.push_back(end - last_);
  last_ = end;
}

void SimulatedTeam::end_region(int threads) {
  RegionTimes region{.shortest = pieces_, .ends = ends_, .all = 0, .threads = threads, .awake = 1};
  region.all = std::accumulate(pieces_.begin(), pieces_.end(), 0.0);
  if (std::cmp_less(idle_.size(), threads)) idle_.resize(static_cast<std::size_t>(threads));
  // A region wakes the first workers only, so those that sleep are the last ones.
  while (region.awake < threads && idle_[region.awake] < seconds_awake) ++region.awake;
  const double seconds = times_of(region, 1, meetings_).seconds;
  for (std::size_t worker = 0; worker < idle_.size(); ++worker)
    idle_[worker] = std::cmp_less(worker, threads) ? 0 : idle_[worker] + seconds;
  work_.regions.push_back(std::move(region));
  last_ = now();  // the time of the prediction does not count
}

WorkTimes SimulatedTeam::take() {
  add_serial(now() - last_);
  return std::exchange(work_, {});
}

void SimulatedTeam::restart() {
  work_ = {};
  last_ = now();
}

}  // namespace xtape
