// Learning-rate schedules.
#include <algorithm>
#include <cmath>

#include "kernels/table/kernels.hpp"
#include "xtape/optim.hpp"

namespace xtape {

namespace {
using ScheduleKind = ScheduleOptions::Kind;

void check(const ScheduleOptions& options, std::int64_t step) {
  if (step < 1) throw Error("schedule: steps count from 1, got " + std::to_string(step));
  for (const double rate : {options.rate, options.final_rate})
    if (!std::isfinite(rate)) throw Error("schedule: rate and final_rate must be finite numbers");
  if (options.warmup < 0) throw Error("schedule: warmup must not be negative, got " + std::to_string(options.warmup));
  if (options.kind == ScheduleKind::linear || options.kind == ScheduleKind::cosine) {
    if (options.steps < 1 || options.steps < options.warmup)
      throw Error("schedule: steps must be at least 1 and not below warmup (" + std::to_string(options.warmup) +
                  "), got " + std::to_string(options.steps));
  }
  if (options.kind == ScheduleKind::noam && (options.warmup < 1 || options.width < 1))
    throw Error("schedule: noam needs a warmup and a width of at least 1");
}
}  // namespace

double rate_at(const ScheduleOptions& options, std::int64_t step) {
  check(options, step);
  const double at = static_cast<double>(step);
  const double warmup = static_cast<double>(options.warmup);
  if (options.kind == ScheduleKind::noam)
    return options.rate / std::sqrt(static_cast<double>(options.width)) *
           std::min(1 / std::sqrt(at), at / (warmup * std::sqrt(warmup)));
  if (step < options.warmup) return options.rate * at / warmup;
  // `gone` is the completed fraction of the steps between the end of the warm-up and the last step.
  const double way = static_cast<double>(options.steps) - warmup;
  const double gone = at <= warmup ? 0 : way > 0 ? std::min(1.0, (at - warmup) / way) : 1;
  switch (options.kind) {
    case ScheduleKind::linear:
      return options.rate + (options.final_rate - options.rate) * gone;
    case ScheduleKind::cosine:
      return options.final_rate + (options.rate - options.final_rate) * 0.5 * (1 + kernels().numbers.cos(M_PI * gone));
    case ScheduleKind::inverse_sqrt:
      return options.rate * std::sqrt(std::max(1.0, warmup) / at);
    default:
      return options.rate;
  }
}

}  // namespace xtape
