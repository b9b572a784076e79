// Learning-rate schedules.
#include <algorithm>
#include <cmath>

#include "kernels/table/kernels.hpp"
#include "xtape/optim.hpp"

namespace xtape {

namespace {
using ScheduleKind = ScheduleOptions::Kind;

bool has_end(ScheduleKind kind) {
  return kind == ScheduleKind::linear || kind == ScheduleKind::cosine || kind == ScheduleKind::exponential;
}

void check(const ScheduleOptions& options) {
  if (!options.parts.empty()) {
    for (const ScheduleOptions& part : options.parts) {
      check(part);
      if (part.steps < 1 && &part != &options.parts.back())
        throw Error("schedule: each part of a list but the last needs a number of steps of at least 1");
    }
    return;
  }
  for (const double rate : {options.rate, options.final_rate})
    if (!std::isfinite(rate)) throw Error("schedule: rate and final_rate must be finite numbers");
  if (options.warmup < 0) throw Error("schedule: warmup must not be negative, got " + std::to_string(options.warmup));
  if (has_end(options.kind)) {
    if (options.restart_every < 0 || options.restart_factor < 1)
      throw Error("schedule: restart_every must be at least 0, and restart_factor at least 1");
    if (options.restart_every == 0 && (options.steps < 1 || options.steps < options.warmup))
      throw Error("schedule: steps must be at least 1 and not below warmup (" + std::to_string(options.warmup) +
                  "), got " + std::to_string(options.steps));
  }
  if (options.kind == ScheduleKind::exponential && (options.rate <= 0 || options.final_rate <= 0))
    throw Error("schedule: exponential needs a rate and a final_rate above 0");
  if (options.kind == ScheduleKind::noam && (options.warmup < 1 || options.width < 1))
    throw Error("schedule: noam needs a warmup and a width of at least 1");
}

/// Returns the completed fraction of the way from rate to final_rate: the steps between the end of the warm-up and the
/// last step, or those since the last restart.
double gone(const ScheduleOptions& options, double at) {
  const auto warmup = static_cast<double>(options.warmup);
  if (options.restart_every > 0) {
    double since = at - std::max(1.0, warmup), period = static_cast<double>(options.restart_every);
    if (options.restart_factor == 1) return std::fmod(since, period) / period;
    for (; since >= period; period *= static_cast<double>(options.restart_factor)) since -= period;
    return since / period;
  }
  const double way = static_cast<double>(options.steps) - warmup;
  return at <= warmup ? 0 : way > 0 ? std::min(1.0, (at - warmup) / way) : 1;
}

/// The rate of a schedule that `check` has found right.
double rate_of(const ScheduleOptions& options, std::int64_t step) {
  for (const ScheduleOptions& part : options.parts) {
    const bool last = &part == &options.parts.back();
    if (step <= part.steps || last) return rate_of(part, part.steps > 0 ? std::min(step, part.steps) : step);
    step -= part.steps;
  }
  const auto at = static_cast<double>(step), warmup = static_cast<double>(options.warmup);
  if (options.kind == ScheduleKind::noam)
    return options.rate / std::sqrt(static_cast<double>(options.width)) *
           std::min(1 / std::sqrt(at), at / (warmup * std::sqrt(warmup)));
  if (step < options.warmup) return options.rate * at / warmup;
  switch (options.kind) {
    case ScheduleKind::linear:
      return options.rate + (options.final_rate - options.rate) * gone(options, at);
    case ScheduleKind::cosine:
      return options.final_rate +
             (options.rate - options.final_rate) * 0.5 * (1 + kernels().numbers.cos(M_PI * gone(options, at)));
    case ScheduleKind::exponential:
      return options.rate * kernels().numbers.pow(options.final_rate / options.rate, gone(options, at));
    case ScheduleKind::inverse_sqrt:
      return options.rate * std::sqrt(std::max(1.0, warmup) / at);
    default:
      return options.rate;
  }
}
}  // namespace

double rate_at(const ScheduleOptions& options, std::int64_t step) {
  if (step < 1) throw Error("schedule: steps count from 1, got " + std::to_string(step));
  check(options);
  return rate_of(options, step);
}

}  // namespace xtape
