#include "cli/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/commands.hpp"

namespace xtape::cli {

namespace {
std::string clock_time(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole >= 3600) return formatted("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  return formatted("%ld:%02ld", whole / 60, whole % 60);
}
}  // namespace

Progress::Progress(std::int64_t steps, int ranks, std::string unit)
    : steps_(steps),
      terminal_(is_terminal(standard_error)),
      ranks_(ranks),
      unit_(std::move(unit)),
      quiet_(terminal_ ? 0.1 : 10) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::step(const StepReport& report) {
  if (first_step_ < 0) first_step_ = report.step - 1;
  tokens_ += report.tokens;
  seconds_ += report.seconds;
  waiting_ += report.waiting;
  for (const LossReport& loss :
       report.losses.empty() ? std::vector<LossReport>{{"loss", report.loss}} : report.losses) {
    const auto known = std::ranges::find(losses_, loss.loss, &LossReport::loss);
    if (known == losses_.end())
      losses_.push_back(loss);
    else
      known->mean = loss.mean;
  }
  const Clock::time_point now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_).count();
  // On a terminal, reports at most ten times a second. In a log, prints about twenty lines in total.
  const bool due = terminal_ ? since > 0.1 : report.step % std::max<std::int64_t>(1, steps_ / 20) == 0;
  if (!due && report.step < steps_) return;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left =
      elapsed / static_cast<double>(report.step - first_step_) * static_cast<double>(steps_ - report.step);
  clear();
  std::fprintf(stderr, "step %lld of %lld  ", static_cast<long long>(report.step), static_cast<long long>(steps_));
  for (const LossReport& loss : losses_)
    if (std::isnan(loss.mean))
      std::fprintf(stderr, "no rows  ");
    else
      std::fprintf(stderr, "%s %.4f  ", loss.loss.c_str(), loss.mean);
  std::fprintf(stderr, "%.0f %s/s", since > 0 ? static_cast<double>(tokens_) / since : 0, unit_.c_str());
  if (ranks_ > 1) std::fprintf(stderr, "  %d ranks, %.0f %% waiting", ranks_, 100 * waiting_ / seconds_);
  std::fprintf(stderr, "  %s left%s", clock_time(left).c_str(), terminal_ ? "" : "\n");
  std::fflush(stderr);
  shown_ = terminal_;
  last_ = last_line_ = now;
  tokens_ = 0;
  seconds_ = waiting_ = 0;
}

void Progress::part(const UpdatePart& part) {
  const Clock::time_point now = Clock::now();
  if (std::chrono::duration<double>(now - last_line_).count() < quiet_) return;
  clear();
  std::fprintf(stderr, "step %lld of %lld: play %lld of %lld%s", static_cast<long long>(part.step),
               static_cast<long long>(steps_), static_cast<long long>(part.plays), static_cast<long long>(part.all),
               terminal_ ? "" : "\n");
  std::fflush(stderr);
  shown_ = terminal_;
  last_line_ = now;
  if (!terminal_) quiet_ *= 2;  // keeps a log short
}

void Progress::note(const std::string& text) {
  clear();
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace xtape::cli
