/// Reports the progress of long work on stderr. On a terminal, it rewrites a single line. Elsewhere, it prints plain
/// lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "xtape/train.hpp"

namespace xtape::cli {

class Progress {
 public:
  /// `ranks` is the number of processes that train together. `unit` is the plural name of what StepReport::tokens
  /// counts.
  Progress(std::int64_t steps, int ranks, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepReport& report);
  /// Reports the progress within an update, if the update takes long.
  void part(const UpdatePart& part);
  /// Prints a line that is not overwritten.
  void note(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  void clear();
  std::int64_t steps_;
  bool terminal_;
  bool shown_ = false;  // whether the terminal's progress line is shown
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  Clock::time_point last_line_ = start_;
  std::int64_t first_step_ = -1;
  int ranks_;
  std::string unit_;
  double quiet_;                    // part() prints a line after this many seconds without one
  std::vector<LossReport> losses_;  // the last mean of each loss
  // Since `last_`:
  std::int64_t tokens_ = 0;
  double seconds_ = 0, waiting_ = 0;
};

}  // namespace xtape::cli
