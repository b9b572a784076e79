/// A team of any number of threads, simulated by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/team.hpp"

namespace xtape {

struct Plan;

/// The time of some work on a team, in seconds, and what it consists of:
///
///   seconds = work / threads + serial * (threads - 1) / threads + few + uneven + meetings
struct TeamTimes {
  double seconds = 0;   ///< The time of the team.
  double work = 0;      ///< The time of one thread.
  double serial = 0;    ///< The part of `work` outside of parallel regions.
  double few = 0;       ///< Lost because a region has too few pieces of equal size, or one more than fits.
  double uneven = 0;    ///< Lost because some pieces take longer than others.
  double meetings = 0;  ///< Lost because helpers come later than the caller.
  std::int64_t regions = 0, pieces = 0;

  TeamTimes& operator+=(const TeamTimes& other);
};

/// Returns the seconds until a team has executed all pieces. `ends` has the index after the last piece of each range.
/// Worker w takes pieces of range w (modulo the number of ranges), then of the ranges after it. Worker 0 begins at
/// once, the others after `meeting` seconds. The worker that is free first takes the next piece.
double makespan(std::span<const double> pieces, std::span<const std::size_t> ends, int threads, double meeting);

/// Returns the times of a region on `threads` of the `team` threads, whose pieces and ranges are those of makespan.
TeamTimes times_of_region(std::span<const double> pieces, std::span<const std::size_t> ends, int threads, int team,
                          double meeting);

/// While this object exists, the calling thread executes the parallel regions that it opens alone, range after range,
/// with the piece sizes and worker numbers of a real team. It measures the pieces and computes how long the team would
/// take. Results have the same bits as those of a real team. Time in which the system does not run the thread does not
/// count.
///
/// Derived classes learn what the thread has done. They attribute the time since the last call to it.
class SimulatedTeam {
 public:
  /// `meeting` is the time from the opening of a region to the first piece of a helper, in seconds.
  SimulatedTeam(int threads, double meeting);
  SimulatedTeam(const SimulatedTeam&) = delete;
  SimulatedTeam& operator=(const SimulatedTeam&) = delete;
  virtual ~SimulatedTeam();

  /// Returns the newest simulated team of the calling thread, or null if there is none.
  static SimulatedTeam* current();

  /// The thread has read or written memory.
  virtual void touched(const void* address, std::size_t bytes, bool written) = 0;
  /// The thread has executed a step of the plan.
  virtual void played(const Plan& plan, std::size_t step) = 0;
  /// The thread has done work outside of players. `what` is its name.
  virtual void worked(const char* what) = 0;
  /// Forgets what was measured so far: it was a warm-up.
  virtual void forget() = 0;

  int threads() const { return threads_; }

  // The regions, for run_pieces and run_each.
  void run_pieces(int threads, const Division& division, const void* context,
                  void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker));
  void run_each(int threads, std::int64_t count, const void* context,
                void (*body)(const void* context, std::int64_t index));

 protected:
  /// Returns the times since the end of the last call of restart().
  TeamTimes take();
  /// Begins to measure. What has passed since the last take() does not count.
  void restart();

 private:
  /// Returns the seconds of the thread on a clock that stands still while the system runs other threads on its core.
  double now();
  void begin_region();
  void end_piece();
  void end_range() { ends_.push_back(pieces_.size()); }
  void end_region(int threads);

  int threads_;
  double meeting_;
  SimulatedTeam* outer_;
  TeamTimes times_ = {};
  double wall_, processor_;        // the two clocks when they were compared last
  double waited_ = 0;              // seconds in which the system ran other threads
  double last_;                    // when the serial code began that is not in times_ yet, or the current piece
  std::vector<double> pieces_;     // the seconds of each piece of the region
  std::vector<std::size_t> ends_;  // of each range of the region
};

}  // namespace xtape
