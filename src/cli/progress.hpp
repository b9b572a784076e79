/// How far long work has come: one line that rewrites itself on a terminal, plain lines elsewhere. On stderr.
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

  /// After step number `step`, with its loss and how many tokens it saw.
  void step(std::int64_t step, double loss, std::int64_t tokens);
  /// A line that stays.
  void note(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  void clear();
  std::int64_t steps_;
  bool terminal_;
  bool shown_ = false;  // whether the terminal's line has text in it
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  std::int64_t first_step_ = -1;
  std::int64_t tokens_ = 0;  // since `last_`
};

}  // namespace xtape::cli
