/// A team of any number of threads, simulated by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/system/team.hpp"

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

/// What the times of parallel regions depend on beside the speed of a core.
struct Meetings {
  int threads = 1;
  double meeting = 0;  ///< Seconds from the opening of a region to the first piece of a helper that is awake.
  double each = 0;     ///< Seconds by which a third, fourth … thread of the region makes this longer.
  double waking = 0;   ///< Seconds in which the caller wakes a helper that sleeps. It wakes one after the other.
  double rising = 0;   ///< Seconds by which such a helper comes later than one that is awake.

  /// Returns the seconds of a meeting of this many threads.
  double of(int count) const { return meeting + each * std::max(0, count - 2); }
};

/// The seconds of the pieces of a parallel region, range after range, in all its executions.
struct RegionTimes {
  std::vector<double> shortest;   ///< Per piece: its shortest time.
  std::vector<std::size_t> ends;  ///< Per range: the index after its last piece.
  double all = 0;                 ///< The sum of the times of all pieces in all executions.
  int threads = 1;                ///< Threads for which the region is divided.
  int awake = 1;                  ///< The largest number of these that did not sleep when it began.
};

/// What a thread has executed some times, always in the same regions and pieces.
struct WorkTimes {
  std::vector<RegionTimes> regions;
  double serial = 0;  ///< The seconds outside of regions in all executions.
  std::int64_t executions = 1;

  /// Adds executions of the same work. Returns false if `other` has other regions or pieces.
  bool add(const WorkTimes& other);
};

/// Returns the seconds until a team has executed all pieces. `ends` has the index after the last piece of each range.
/// Worker w begins at begins[w]. It takes pieces of range w (modulo the number of ranges), then of the ranges after it.
/// The worker that is free first takes the next piece.
double makespan(std::span<const double> pieces, std::span<const std::size_t> ends, std::span<const double> begins);

/// Returns the times of a mean execution of a region. The pieces relate to each other as their shortest times do:
/// whatever disturbs a piece on this machine does not disturb the same piece of every execution.
TeamTimes times_of(const RegionTimes& region, std::int64_t executions, const Meetings& meetings);
/// Returns the times of a mean execution of work.
TeamTimes times_of(const WorkTimes& work, const Meetings& meetings);

/// While this object exists, the calling thread executes the parallel regions that it opens alone, range after range,
/// with the piece sizes and worker numbers of a real team. It measures the pieces and computes how long the team would
/// take. Results have the same bits as those of a real team. Time in which the system does not run the thread does not
/// count.
///
/// Derived classes learn what the thread has done. They attribute the time since the last call to it.
class SimulatedTeam {
 public:
  explicit SimulatedTeam(const Meetings& meetings);
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

  const Meetings& meetings() const { return meetings_; }

  // The regions, for run_pieces and run_each.
  void run_pieces(const Division& division, const void* context,
                  void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker));
  void run_each(int threads, std::int64_t count, const void* context,
                void (*body)(const void* context, std::int64_t index));

 protected:
  /// Returns the work since the end of the last call of restart().
  WorkTimes take();
  /// Begins to measure. What has passed since the last take() does not count.
  void restart();

 private:
  /// Returns the seconds of the thread on a clock that stands still while the system runs other threads on its core.
  double now();
  void begin_region();
  void add_serial(double seconds);
  void end_piece();
  void end_range() { ends_.push_back(pieces_.size()); }
  void end_region(int threads);

  Meetings meetings_;
  SimulatedTeam* outer_;
  WorkTimes work_ = {};
  double wall_, processor_;        // the two clocks when they were compared last
  double waited_ = 0;              // seconds in which the system ran other threads
  double last_;                    // when the serial code began that is not in work_ yet, or the current piece
  std::vector<double> idle_;       // per worker: the seconds of the team since it had work
  std::vector<double> pieces_;     // the seconds of each piece of the region
  std::vector<std::size_t> ends_;  // of each range of the region
};

}  // namespace xtape
