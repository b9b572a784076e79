#include <doctest/doctest.h>

#include <cmath>

#include "xtape/optim.hpp"

using namespace xtape;
using ScheduleKind = ScheduleOptions::Kind;

namespace {
ScheduleOptions schedule(ScheduleKind kind, std::int64_t warmup, std::int64_t steps) {
  ScheduleOptions options;
  options.kind = kind;
  options.rate = 0.8;
  options.final_rate = 0.2;
  options.warmup = warmup;
  options.steps = steps;
  return options;
}
}  // namespace

TEST_CASE("every schedule warms up linearly to the full rate") {
  for (ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::inverse_sqrt}) {
    const ScheduleOptions options = schedule(kind, 4, 12);
    CHECK(rate_at(options, 1) == doctest::Approx(0.2));
    CHECK(rate_at(options, 3) == doctest::Approx(0.6));
    CHECK(rate_at(options, 4) == doctest::Approx(0.8));
  }
}

TEST_CASE("schedules follow their formulas") {
  CHECK(rate_at(schedule(ScheduleKind::constant, 0, 0), 1) == 0.8);
  CHECK(rate_at(schedule(ScheduleKind::constant, 4, 0), 1000) == 0.8);

  CHECK(rate_at(schedule(ScheduleKind::linear, 4, 12), 6) == doctest::Approx(0.65));
  CHECK(rate_at(schedule(ScheduleKind::linear, 4, 12), 12) == doctest::Approx(0.2));
  CHECK(rate_at(schedule(ScheduleKind::linear, 4, 12), 99) == doctest::Approx(0.2));
  CHECK(rate_at(schedule(ScheduleKind::linear, 0, 10), 1) == doctest::Approx(0.74));

  CHECK(rate_at(schedule(ScheduleKind::cosine, 4, 12), 6) == doctest::Approx(0.2 + 0.3 * (1 + std::sqrt(0.5))));
  CHECK(rate_at(schedule(ScheduleKind::cosine, 4, 12), 8) == doctest::Approx(0.5));
  CHECK(rate_at(schedule(ScheduleKind::cosine, 4, 12), 12) == doctest::Approx(0.2));
  CHECK(rate_at(schedule(ScheduleKind::cosine, 4, 12), 13) == doctest::Approx(0.2));

  CHECK(rate_at(schedule(ScheduleKind::inverse_sqrt, 4, 0), 16) == doctest::Approx(0.4));
  CHECK(rate_at(schedule(ScheduleKind::inverse_sqrt, 0, 0), 1) == doctest::Approx(0.8));
  CHECK(rate_at(schedule(ScheduleKind::inverse_sqrt, 0, 0), 4) == doctest::Approx(0.4));

  // Vaswani et al., 2017, with the width and warm-up of their base model.
  ScheduleOptions noam = schedule(ScheduleKind::noam, 4000, 0);
  noam.rate = 1;
  noam.width = 512;
  CHECK(rate_at(noam, 1) == doctest::Approx(1.746928107421711e-07));
  CHECK(rate_at(noam, 4000) == doctest::Approx(6.987712429686843e-04));
  CHECK(rate_at(noam, 16000) == doctest::Approx(3.4938562148434216e-04));
}

TEST_CASE("a schedule that ends with its warm-up reaches the full rate, then the final rate") {
  CHECK(rate_at(schedule(ScheduleKind::cosine, 4, 4), 4) == doctest::Approx(0.8));
  CHECK(rate_at(schedule(ScheduleKind::cosine, 4, 4), 5) == doctest::Approx(0.2));
}

TEST_CASE("invalid schedules are errors") {
  CHECK_THROWS_WITH_AS(rate_at(schedule(ScheduleKind::constant, 0, 0), 0), "schedule: steps count from 1, got 0",
                       Error);
  CHECK_THROWS_AS(rate_at(schedule(ScheduleKind::constant, -1, 0), 1), Error);
  CHECK_THROWS_WITH_AS(rate_at(schedule(ScheduleKind::cosine, 100, 50), 1),
                       "schedule: steps must be at least 1 and not below warmup (100), got 50", Error);
  CHECK_THROWS_AS(rate_at(schedule(ScheduleKind::linear, 0, 0), 1), Error);
  CHECK_THROWS_AS(rate_at(schedule(ScheduleKind::noam, 0, 0), 1), Error);
  for (const double wrong : {std::nan(""), HUGE_VAL}) {
    ScheduleOptions options;
    options.rate = wrong;
    CHECK_THROWS_WITH_AS(rate_at(options, 1), "schedule: rate and final_rate must be finite numbers", Error);
    options = {};
    options.final_rate = wrong;
    CHECK_THROWS_AS(rate_at(options, 1), Error);
  }
}
