/// The processor cores that this process can use, and the number of threads that follows from them.
#pragma once

#include <string>
#include <vector>

namespace xtape {

// What Linux calls a processor is a hardware thread. A core has one or two of them.

/// The part of the machine that a process can use.
struct UsableCores {
  int processors = 1;      ///< The processors of the machine.
  int allowed = 1;         ///< Those on which the process may run (its affinity mask).
  std::vector<int> cores;  ///< The cores of the allowed processors. The first processor of a core is its number.
  /// The processors whose time the control group of the process and its parents grant, such as 2 or 0.5. 0 means no
  /// limit.
  double quota = 0;

  /// Returns the number of threads that can run at the same time on cores of their own, at least 1. A started
  /// processor of the quota counts as a whole one.
  int count() const;
  /// Returns the number of processors and what makes count() smaller: "of 64 processors: the quota of the control group
  /// is 2".
  std::string reason() const;
};

/// Reads the cores of `allowed` processors, and the quotas of control groups (versions 1 and 2), from the files of
/// Linux below `root`, a folder that stands for "/". A file that is missing or malformed limits nothing.
UsableCores usable_cores(const std::string& root, const std::vector<int>& allowed, int processors);
/// Reads those of this process. Its affinity mask is that of its first thread.
UsableCores usable_cores();

/// A number of threads and how it was chosen.
struct ThreadChoice {
  int count = 1;
  std::string reason;  ///< "OMP_NUM_THREADS" or UsableCores::reason().
};

/// Returns the first number of `variable`, the value of OMP_NUM_THREADS: "4", or "4,2" for nested regions. Without a
/// value (null or ""), returns the count of `usable`. Throws Error if it does not begin with a number from 1 to
/// most_threads.
ThreadChoice chosen_threads(const char* variable, const UsableCores& usable);

/// Returns the choice for this process: that of the first call, or the last limit.
const ThreadChoice& default_threads();

/// Limits the choice for this process, which shares its cores with others, to `count` threads. No other thread may call
/// default_threads() or thread_count() at the same time.
void limit_default_threads(int count, const std::string& reason);

}  // namespace xtape
