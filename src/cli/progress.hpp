/// Reports the progress of long work on stderr: on a terminal as one line that is rewritten, elsewhere as plain lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace xtape::cli {

class Progress {
 public:
  explicit Progress(std::int64_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Reports step number `step`, its loss and its number of tokens.
  void step(std::int64_t step, double loss, std::int64_t tokens);
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
  std::int64_t first_step_ = -1;
  std::int64_t tokens_ = 0;  // since `last_`
};

}  // namespace xtape::cli
