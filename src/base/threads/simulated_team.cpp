#include "base/threads/simulated_team.hpp"

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

double makespan(std::span<const double> pieces, std::span<const std::size_t> ends, int threads, double meeting) {
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
  for (int i = 0; i < threads; ++i) workers.push({i == 0 ? 0 : meeting, static_cast<std::size_t>(i)});
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

TeamTimes times_of_region(std::span<const double> pieces, std::span<const std::size_t> ends, int threads, int team,
                          double meeting) {
  const auto count = static_cast<double>(pieces.size());
  const double sum = std::accumulate(pieces.begin(), pieces.end(), 0.0);
  const double apart = makespan(pieces, ends, threads, meeting), together = makespan(pieces, ends, threads, 0);
  const double equal = std::min(together, std::ceil(count / threads) * sum / count);  // if all pieces were equal
  return {.seconds = apart,
          .work = sum,
          .few = equal - sum / team,
          .uneven = together - equal,
          .meetings = apart - together,
          .regions = 1,
          .pieces = std::ssize(pieces)};
}

SimulatedTeam::SimulatedTeam(int threads, double meeting)
    : threads_(threads),
      meeting_(meeting),
      outer_(simulating),
      wall_(seconds_now()),
      processor_(processor_seconds()),
      last_(wall_) {
  simulating = this;
}
SimulatedTeam::~SimulatedTeam() {
  simulating = outer_;
}
SimulatedTeam* SimulatedTeam::current() {
  return simulating;
}

void SimulatedTeam::run_pieces(int threads, const Division& division, const void* context,
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
  end_region(threads);
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
  end_region(threads);
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

void SimulatedTeam::begin_region() {
  pieces_.clear();
  ends_.clear();
  const double start = now();
  times_.serial += start - last_;
  last_ = start;
}

void SimulatedTeam::end_piece() {
  const double end = now();
  pieces_.push_back(end - last_);
  last_ = end;
}

void SimulatedTeam::end_region(int threads) {
  times_ += times_of_region(pieces_, ends_, threads, threads_, meeting_);
  last_ = now();  // the time of the prediction does not count
}

TeamTimes SimulatedTeam::take() {
  times_.serial += now() - last_;
  times_.work += times_.serial;
  times_.seconds += times_.serial;
  return std::exchange(times_, {});
}

void SimulatedTeam::restart() {
  times_ = {};
  last_ = now();
}

}  // namespace xtape
