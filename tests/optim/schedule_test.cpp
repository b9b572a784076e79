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

TEST_CASE("exponential schedules fall by the same factor in each step") {
  const ScheduleOptions options = schedule(ScheduleKind::exponential, 4, 12);
  CHECK(rate_at(options, 2) == doctest::Approx(0.4));
  CHECK(rate_at(options, 4) == doctest::Approx(0.8));
  for (std::int64_t step = 4; step < 12; ++step)
    CHECK(rate_at(options, step + 1) / rate_at(options, step) == doctest::Approx(std::pow(0.25, 1.0 / 8)));
  CHECK(rate_at(options, 12) == doctest::Approx(0.2));
  CHECK(rate_at(options, 50) == doctest::Approx(0.2));
}

TEST_CASE("restarts of cosine are those of PyTorch's CosineAnnealingWarmRestarts") {
  ScheduleOptions options = schedule(ScheduleKind::cosine, 0, 0);
  const auto compare = [&](const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(rate_at(options, static_cast<std::int64_t>(i) + 1) == doctest::Approx(expected[i]).epsilon(1e-8));
  };
  options.restart_every = 5;  // T_0 = 5, eta_min = 0.2
  compare({0.8, 0.742705098, 0.592705098, 0.407294902, 0.257294902, 0.8, 0.742705098, 0.592705098, 0.407294902,
           0.257294902, 0.8, 0.742705098});
  options.restart_every = 3;  // T_0 = 3, T_mult = 2, eta_min = 0.1
  options.restart_factor = 2;
  options.final_rate = 0.1;
  compare({0.8, 0.625, 0.275, 0.8, 0.753108891, 0.625, 0.45, 0.275, 0.146891109, 0.8, 0.788074039, 0.753108891});
  options.warmup = 4;  // the first period begins at the end of the warm-up
  CHECK(rate_at(options, 2) == doctest::Approx(0.4));
  CHECK(rate_at(options, 4) == doctest::Approx(0.8));
  CHECK(rate_at(options, 5) == doctest::Approx(0.625));
  CHECK(rate_at(options, 7) == doctest::Approx(0.8));
  CHECK(rate_at(options, std::int64_t{1} << 60) > 0);
}

TEST_CASE("linear and exponential schedules restart, too") {
  ScheduleOptions options = schedule(ScheduleKind::linear, 0, 0);
  options.restart_every = 3;
  CHECK(rate_at(options, 1) == doctest::Approx(0.8));
  CHECK(rate_at(options, 3) == doctest::Approx(0.4));
  CHECK(rate_at(options, 4) == doctest::Approx(0.8));
  options.kind = ScheduleKind::exponential;
  options.restart_every = 2;
  CHECK(rate_at(options, 2) == doctest::Approx(0.4));
  CHECK(rate_at(options, 3) == doctest::Approx(0.8));
}

TEST_CASE("the parts of a list follow each other, each with its own steps") {
  ScheduleOptions list;
  list.parts = {schedule(ScheduleKind::linear, 0, 4), schedule(ScheduleKind::exponential, 0, 2),
                schedule(ScheduleKind::constant, 0, 3)};
  list.parts[0].rate = 0;
  const std::vector<double> expected = {0.05, 0.1, 0.15, 0.2, 0.4, 0.2, 0.8, 0.8, 0.8, 0.8, 0.8};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(rate_at(list, static_cast<std::int64_t>(i) + 1) == doctest::Approx(expected[i]));
  list.parts[2] = schedule(ScheduleKind::inverse_sqrt, 1, 4);  // after the last part, its last rate stays
  CHECK(rate_at(list, 10) == doctest::Approx(0.4));
  CHECK(rate_at(list, 1000) == doctest::Approx(0.4));
  list.parts[2].steps = 0;  // no end
  CHECK(rate_at(list, 22) == doctest::Approx(0.2));
  ScheduleOptions outer;
  outer.parts = {list, schedule(ScheduleKind::constant, 0, 0)};
  outer.parts[0].steps = 5;
  CHECK(rate_at(outer, 5) == doctest::Approx(0.4));
  CHECK(rate_at(outer, 6) == doctest::Approx(0.8));
}

TEST_CASE("wrong options of schedules are errors") {
  const auto complaint = [](const ScheduleOptions& options) -> std::string {
    try {
      rate_at(options, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  ScheduleOptions options = schedule(ScheduleKind::exponential, 0, 5);
  options.final_rate = 0;
  CHECK(complaint(options) == "schedule: exponential needs a rate and a final_rate above 0");
  options = schedule(ScheduleKind::cosine, 0, 5);
  options.restart_every = 2;
  options.restart_factor = 0;
  CHECK(complaint(options) == "schedule: restart_every must be at least 0, and restart_factor at least 1");
  ScheduleOptions list;
  list.parts = {schedule(ScheduleKind::constant, 0, 0), options};
  CHECK(complaint(list) == "schedule: each part of a list but the last needs a number of steps of at least 1");
  list.parts[0].steps = 3;
  CHECK(complaint(list) == "schedule: restart_every must be at least 0, and restart_factor at least 1");  // of any part
}
