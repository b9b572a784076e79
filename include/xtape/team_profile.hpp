/// Predictions of the time on a machine with more cores, from measurements of one thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "xtape/owner.hpp"

namespace xtape {

/// What the time of a team depends on beside the speed of a core.
struct TeamMachine {
  int threads = 1;
  double meeting = 0;       ///< Seconds from the beginning of a loop on two threads to the first work of the other one.
  double meeting_each = 0;  ///< Seconds by which each further thread of the loop makes this longer.
  double waking = 0;        ///< Seconds that waking a thread takes. Threads sleep after 100 µs without work.
  double rising = 0;        ///< Seconds by which a thread that slept comes later than the others.
  double bandwidth = 0;     ///< Bytes per second between memory and all cores together. 0: not a limit.
  std::size_t cache = 0;    ///< Bytes of the last-level cache. What it holds takes nothing of the bandwidth.
};
/// Returns a machine with this many cores like those of this machine. Measures how two threads meet here. Each
/// further thread adds 0.1 µs. The bandwidth and the cache are those of
/// this machine, so give those of the other machine if they are known. Throws Error as thread_count does
/// (docs/how_to/many_cores.md).
TeamMachine team_machine(int threads);

/// The predicted time of the calls of an op, or of work outside of players: "(optimizer)", "(batches)", "(rest)". In
/// seconds:
///
///   seconds = work / threads + serial * (threads - 1) / threads + few + uneven + meetings + memory
struct TeamWork {
  std::string op;
  std::string module;  ///< Scope::path. "" outside of modules.
  std::int64_t calls = 0;
  double seconds = 0;   ///< The time of the team.
  double work = 0;      ///< The time of one thread.
  double serial = 0;    ///< The part of `work` outside of parallel loops, during which the other threads wait.
  double few = 0;       ///< Lost because loops have too few pieces, or some more than a multiple of the threads.
  double uneven = 0;    ///< Lost because some pieces take longer than others.
  double meetings = 0;  ///< Lost because the other threads come later.
  double memory = 0;    ///< Lost because memory delivers fewer bytes than the cores ask for.
  double traffic = 0;   ///< Bytes between memory and cache.
  std::int64_t loops = 0, pieces = 0;

  /// Returns the seconds that all threads together lose.
  double lost(int threads) const { return threads * seconds - work; }
  /// Returns the largest cause of the loss: "serial code", "too few pieces", "uneven pieces", "meetings" or "memory".
  const char* cause(int threads) const;
  TeamWork& operator+=(const TeamWork& other);
};

/// Measures the work of the calling thread while this object exists, and predicts its time on another machine. Players
/// that the thread makes for `machine.threads` threads (PlayerOptions::threads) play as always, and their results have
/// the same bits. But the thread executes all parallel loops alone: the pieces of the first of the threads, then those
/// of the second, and so on. From the times of the pieces follows the time of the team.
///
/// Optimizers, trainers and predictors take part. Objects may be nested; the innermost one measures.
class TeamProfile {
 public:
  /// Throws Error if `machine` has no threads, or a number is negative or not finite.
  explicit TeamProfile(const TeamMachine& machine);
  ~TeamProfile();
  TeamProfile(const TeamProfile&) = delete;
  TeamProfile& operator=(const TeamProfile&) = delete;

  /// Attributes the time since the last step of a play, update or note to `what`, such as "(rest)".
  void note(const std::string& what);
  /// Forgets the times so far, which were a warm-up. What the cache holds stays.
  void forget();
  const TeamMachine& machine() const;
  /// Returns the work so far by op and module. If the same step was executed several times, times are means. Time after
  /// the last step of a play, update or note does not count.
  std::vector<TeamWork> works() const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// A prediction for repeated work, such as an update.
struct TeamPrediction {
  TeamMachine machine;
  double one = 0;               ///< Seconds that one thread takes.
  double seconds = 0;           ///< Seconds that the team takes.
  std::vector<TeamWork> works;  ///< The one that loses most first. Numbers are those of one repetition, except `calls`,
                                ///< `loops` and `pieces`.
  std::int64_t repetitions = 1;

  double speed_up() const { return one / seconds; }
  double efficiency() const { return speed_up() / machine.threads; }
};
/// Compares two profiles of the same work, each repeated so many times. `one` has one thread. With `by_module`, the
/// prediction has one TeamWork for each module instead of each op.
TeamPrediction prediction(const TeamProfile& one, const TeamProfile& team, std::int64_t repetitions,
                          bool by_module = false);
/// Writes the times, and the ten ops that lose most.
std::ostream& operator<<(std::ostream& out, const TeamPrediction& prediction);

}  // namespace xtape
