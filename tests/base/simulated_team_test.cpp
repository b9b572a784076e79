#include "base/threads/simulated_team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/threads.hpp"

using namespace xtape;

namespace {
using Ranges = std::vector<std::vector<double>>;

double time_of(const Ranges& ranges, int threads, double meeting = 0) {
  std::vector<double> pieces;
  std::vector<std::size_t> ends;
  for (const std::vector<double>& range : ranges) {
    pieces.insert(pieces.end(), range.begin(), range.end());
    ends.push_back(pieces.size());
  }
  std::vector<double> begins(static_cast<std::size_t>(threads), meeting);
  begins[0] = 0;
  return makespan(pieces, ends, begins);
}

/// A team that keeps what it measures.
class Measuring : public SimulatedTeam {
 public:
  explicit Measuring(int threads, double meeting = 0) : SimulatedTeam({.threads = threads, .meeting = meeting}) {}
  void touched(const void* /*address*/, std::size_t /*bytes*/, bool /*written*/) override {}
  void played(const Plan& /*plan*/, std::size_t /*step*/) override {}
  void worked(const char* /*what*/) override {
    last = take();
    times += times_of(last, meetings());
    restart();
  }
  void forget() override { restart(); }
  TeamTimes times = {};
  WorkTimes last = {};
};

/// A region in which all threads are awake, executed once.
RegionTimes region_of(const Ranges& ranges, int threads) {
  RegionTimes region{.shortest = {}, .ends = {}, .all = 0, .threads = threads, .awake = threads};
  for (const std::vector<double>& range : ranges) {
    region.shortest.insert(region.shortest.end(), range.begin(), range.end());
    region.ends.push_back(region.shortest.size());
    for (const double piece : range) region.all += piece;
  }
  return region;
}

void check_sum(const TeamTimes& times, double threads) {
  CHECK(times.seconds == doctest::Approx(times.work / threads + times.serial * (threads - 1) / threads + times.few +
                                         times.uneven + times.meetings));
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr double spun = 3e-3;
/// Uses the processor for `spun` seconds, however busy the machine is.
constexpr auto spin = [](std::int64_t /*index*/ = 0) {
  const double end = processor_seconds() + spun;
  while (processor_seconds() < end) {
  }
};
}  // namespace

TEST_CASE("the schedule of a team: every worker takes its range, then helps with the ranges after it") {
  CHECK(time_of({{1, 1}, {1, 1}, {1, 1}, {1, 1}}, 4) == 2);
  CHECK(time_of({{1, 1}, {1, 1}, {1, 1}, {1, 1}}, 1) == 8);
  CHECK(time_of({{10}, {1}, {1}, {1}}, 4) == 10);          // one huge piece
  CHECK(time_of({{1}, {1}, {1}}, 8) == 1);                 // fewer pieces than workers
  CHECK(time_of({{1, 1}, {1, 1}}, 4) == 1);                // fewer ranges than workers
  CHECK(time_of({{1, 1, 1, 1}, {3, 3, 3, 3}}, 2) == 9);    // the first worker helps from 4 on
  CHECK(time_of({{2}, {1}, {5, 5}}, 3) == 6);              // the second one, which is free first, helps
  CHECK(time_of({{3, 1, 1, 1}}, 2) == 3);                  // all take from one range
  CHECK(time_of({{1, 1, 1, 1, 1}}, 2) == 3);               // one piece more than fits
  CHECK(time_of({{1}, {}, {}}, 3) == 1);                   // empty ranges
  CHECK(time_of({{4}, {1, 1, 1}, {1, 1, 1, 1}}, 3) == 4);  // helping fills the gaps
}

TEST_CASE("the schedule of a team: helpers begin after a meeting, and the caller at once") {
  CHECK(time_of({{1, 1}, {1, 1}}, 2, 0.5) == 2.5);
  CHECK(time_of({{1, 1}, {1, 1}}, 2, 1.5) == 3);
  CHECK(time_of({{1, 1}, {1, 1}}, 2, 10) == 4);  // the caller has done everything before
  CHECK(time_of({{1, 1}, {1, 1}}, 1, 10) == 4);
}

TEST_CASE("a simulated team has the pieces and the workers of a real one, for any number of threads") {
  for (const int threads : {2, 5, 64, 96, 256}) {
    CAPTURE(threads);
    std::vector<int> times(10000);
    std::set<std::int64_t> workers;
    const auto body = [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
      workers.insert(worker);
      for (std::int64_t i = begin; i < end; ++i) ++times[static_cast<std::size_t>(i)];
    };
    {
      const Measuring team(threads, 0);
      parallel_pieces(threads, std::ssize(times), 3, body);
    }
    CHECK(times == std::vector<int>(times.size(), 1));
    CHECK(*workers.begin() == 0);
    CHECK(*workers.rbegin() < threads);
    CHECK(std::ssize(workers) > threads / 2);  // ranges are multiples of the grain, so the last ones can be empty
  }
}

TEST_CASE("a real team divides a loop into a range for each of its threads, also for more than 64") {
  bool is_right = true;
  std::vector<int> times(1000);
  std::thread([&] {  // a thread of its own, whose helpers end with it
    std::atomic<bool> fits{true};
    parallel_pieces(256, std::ssize(times), 1, [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
      // A range of 4 elements has pieces of one element. One of 16, for 64 threads, would have pieces of 2.
      if (worker < 0 || worker >= 256 || end - begin > 1) fits = false;
      for (std::int64_t i = begin; i < end; ++i) ++times[static_cast<std::size_t>(i)];
    });
    is_right = fits;
  })
      .join();
  CHECK(is_right);
  CHECK(times == std::vector<int>(times.size(), 1));
}

TEST_CASE("a simulated team does everything on the calling thread, and loops within loops in one piece") {
  const std::thread::id here = std::this_thread::get_id();
  Measuring team(4, 0);
  int inner = 0, wrong = 0;
  parallel_for(4, 32, 1, [&](std::int64_t /*begin*/, std::int64_t /*end*/) {
    parallel_for(4, 100, 1, [&](std::int64_t begin, std::int64_t end) {
      inner += begin == 0 && end == 100 ? 1 : 0;
      wrong += std::this_thread::get_id() != here;
    });
    parallel_each(4, 3, [&](std::int64_t) { wrong += std::this_thread::get_id() != here; });
  });
  team.worked("");
  CHECK(inner == 32);
  CHECK(wrong == 0);
  CHECK(team.times.regions == 1);
  CHECK(team.times.pieces == 32);
}

TEST_CASE("a team loses time by few pieces, uneven pieces and meetings") {
  const auto times = [](const Ranges& ranges, int threads, int team, double meeting) {
    const RegionTimes region = region_of(ranges, threads);
    const TeamTimes found = times_of(region, 1, {.threads = team, .meeting = meeting});
    CHECK(found.pieces == std::ssize(region.shortest));
    check_sum(found, team);
    return found;
  };
  const TeamTimes even = times({{2, 2}, {2, 2}}, 2, 2, 0);
  CHECK(even.seconds == 4);
  CHECK(even.work == 8);
  CHECK(even.serial == 0);
  CHECK(even.few + even.uneven + even.meetings == 0);
  const TeamTimes five = times({{2, 2, 2}, {2, 2}}, 2, 2, 0);  // 6 seconds instead of 5
  CHECK(five.few == 1);
  CHECK(five.uneven == 0);
  const TeamTimes uneven = times({{7}, {1}}, 2, 2, 0);  // 7 seconds instead of 4
  CHECK(uneven.few == 0);
  CHECK(uneven.uneven == 3);
  const TeamTimes late = times({{2, 2}, {2, 2}}, 2, 2, 1);
  CHECK(late.meetings == 1);
  CHECK(late.uneven == 0);
  const TeamTimes narrow = times({{3}, {3}}, 2, 6, 0);  // a loop that uses two of six threads: 3 seconds instead of 1
  CHECK(narrow.few == 2);
}

TEST_CASE("a piece that was slow once is not slow in the mean execution, but the work is that of all executions") {
  WorkTimes work{{region_of({{2, 2}, {2, 6}}, 2)}, 1};
  CHECK(work.add({{region_of({{2, 2}, {8, 2}}, 2)}, 3}));
  CHECK(work.executions == 2);
  const TeamTimes found = times_of(work, {.threads = 2});
  CHECK(found.serial == 2);
  CHECK(found.work == 15);   // (12 + 1 + 14 + 3) / 2
  CHECK(found.uneven == 0);  // the shortest times are equal
  CHECK(found.seconds == 2 + 13.0 / 2);
  check_sum(found, 2);
  CHECK(!work.add({{region_of({{2, 2, 2}, {2}}, 2)}, 1}));  // other ranges
  CHECK(!work.add({{region_of({{2, 2}, {2, 2}}, 3)}, 1}));
  CHECK(!work.add({{}, 1}));
  CHECK(work.executions == 2);
}

TEST_CASE("threads that sleep are woken one after the other, and come later") {
  RegionTimes region = region_of({{8}, {8}, {8}, {8}}, 4);
  Meetings meetings{.threads = 64, .meeting = 0.5, .each = 0.25, .waking = 0.25, .rising = 3};
  CHECK(times_of(region, 1, meetings).seconds == 9);  // a meeting of four threads takes 0.5 + 2 * 0.25
  meetings.threads = 4;
  region.awake = 2;  // the caller takes half a second for two threads; the last one begins at 1 + 0.5 + 3
  const TeamTimes found = times_of(region, 1, meetings);
  CHECK(found.seconds == 12.5);
  CHECK(found.meetings == 4.5);
  check_sum(found, 4);
}

TEST_CASE("threads sleep that had no work for a while, because of serial code or loops of few pieces") {
  Measuring team(8);
  const auto awake = [&](std::int64_t pieces) {
    parallel_each(8, pieces, [](std::int64_t) {});
    team.worked("");
    return team.last.regions.at(0).awake;
  };
  const auto all_awake = [&](std::int64_t pieces) {
    while (awake(pieces) < pieces) {  // until nothing disturbs this thread between two loops
    }
  };
  all_awake(8);
  spin();
  CHECK(awake(3) == 1);  // the caller
  all_awake(3);
  CHECK(awake(8) <= 3);  // the others have slept on
  all_awake(8);
  parallel_each(8, 2, spin);
  team.worked("");
  CHECK(awake(8) <= 2);
}

TEST_CASE("a simulated team measures loops and the code between them") {
  constexpr int threads = 4;
  Measuring team(threads, 1e-6);
  parallel_each(threads, 4, spin);
  team.worked("");
  const TeamTimes loop = std::exchange(team.times, {});
  CHECK(loop.work >= 3.9 * spun);
  CHECK(loop.seconds >= 0.9 * spun);
  CHECK(loop.seconds <= loop.work - 2.9 * spun);  // three of the four work at the same time as the slowest
  CHECK(loop.pieces == 4);
  check_sum(loop, threads);

  spin();                           // not in a loop
  parallel_each(threads, 1, spin);  // a loop of one element is not divided
  team.worked("");
  CHECK(team.times.regions == 0);
  CHECK(team.times.serial >= 1.9 * spun);
  CHECK(team.times.serial == team.times.seconds);
  CHECK(team.times.serial == team.times.work);
}

TEST_CASE("time in which a thread does not run does not count") {
  Measuring team(2, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  parallel_each(2, 2, [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(200)); });
  team.worked("");
  CHECK(team.times.work < 0.1);
}

TEST_CASE("the innermost simulated team measures, and the thread has its helpers again at the end") {
  CHECK(SimulatedTeam::current() == nullptr);
  {
    Measuring outer(2, 0);
    {
      Measuring inner(3, 0);
      CHECK(SimulatedTeam::current() == &inner);
      parallel_each(3, 3, [](std::int64_t) {});
      inner.worked("");
      CHECK(inner.times.regions == 1);
      std::thread([] { CHECK(SimulatedTeam::current() == nullptr); }).join();  // of this thread only
    }
    CHECK(SimulatedTeam::current() == &outer);
    outer.worked("");
    CHECK(outer.times.regions == 0);
  }
  CHECK(SimulatedTeam::current() == nullptr);
}
