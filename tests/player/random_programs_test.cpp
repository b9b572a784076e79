// Every way of playing gives what the reference gives, on programs made at random.
#include "random_programs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

using namespace xtape;

namespace {
using Switch = std::pair<const char*, bool Passes::*>;
const Switch switches[] = {{"fuse", &Passes::fuse},         {"fold", &Passes::fold},
                           {"common", &Passes::common},     {"accumulate", &Passes::accumulate},
                           {"chains", &Passes::chains},     {"bands", &Passes::bands},     {"views", &Passes::views},
                           {"in_place", &Passes::in_place}, {"reuse", &Passes::reuse}};

std::vector<std::pair<std::string, Passes>> ways_of_playing() {
  std::vector<std::pair<std::string, Passes>> ways = {{"all on", Passes()}};
  Passes none = Passes::reference();
  none.expand = false;
  ways.emplace_back("all off, not expanded", none);
  Passes expanded;
  expanded.expand = true;
  ways.emplace_back("all on, expanded", expanded);
  for (const auto& [name, pass] : switches) {
    Passes without;
    without.*pass = false;
    ways.emplace_back(std::string("without ") + name, without);
    Passes only = none;
    only.*pass = true;
    ways.emplace_back(std::string("only ") + name, only);
  }
  return ways;
}

using Values = std::vector<std::vector<double>>;

std::vector<double> numbers(const ArrayView& view) {
  const Array dense(view);
  std::vector<double> result;
  for (std::int64_t i = 0; i < dense.count(); ++i)
    result.push_back(view.dtype() == Dtype::float32 ? dense.as<float>()[i] : dense.as<double>()[i]);
  return result;
}

/// The outputs and carried states of three plays.
Values played(const RandomProgram& program, const Passes& passes, int threads) {
  PlayerOptions options;
  options.passes = passes;
  options.threads = threads;
  options.seed = 7;
  options.carries = program.carries;
  Player player(program.tape, program.outputs, options);
  Values values;
  for (std::size_t play = 0; play < 3; ++play) {
    player.play(program.feeds(play), play);
    for (const Var& output : program.outputs) values.push_back(numbers(player.view(output)));
    for (const Carry& carry : program.carries) {
      values.push_back(numbers(player.view(carry.output)));
      try {
        values.push_back(numbers(player.carried(carry.input)));
      } catch (const Error&) {  // nothing reads it
      }
    }
  }
  return values;
}

/// The largest difference, relative to the largest number of its array; infinite where not both are finite.
double difference(const Values& a, const Values& b) {
  double worst = 0;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    double scale = 1;
    for (double number : b[i]) scale = std::max(scale, std::abs(number));
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      const double off = std::abs(a[i][k] - b[i][k]) / scale;
      worst = std::isnan(off) ? HUGE_VAL : std::max(worst, off);
    }
  }
  return worst;
}

void compare_all(std::uint64_t seed, Dtype dtype, double tolerance) {
  const RandomProgram program = random_program(seed, dtype);
  const Values truth = played(program, Passes::reference(), 1);
  int threads = 0;
  for (const auto& [name, passes] : ways_of_playing()) {
    const double off = difference(played(program, passes, 1 + threads++ % 3), truth);
    INFO("seed " << seed << ", " << name_of(dtype) << ", " << name);
    CHECK(off <= tolerance);
  }
}

/// For longer searches than the suite makes: XTAPE_RANDOM_PROGRAMS=first:count.
std::pair<std::uint64_t, std::uint64_t> seeds(std::uint64_t count) {
  if (const char* wanted = std::getenv("XTAPE_RANDOM_PROGRAMS")) {
    char* colon = nullptr;
    const std::uint64_t first = std::strtoull(wanted, &colon, 10);
    return {first, *colon == ':' ? std::strtoull(colon + 1, nullptr, 10) : 1};
  }
  return {0, count};
}
}  // namespace

TEST_CASE("random programs: every pass by itself, and all together, agree with the reference in float64") {
  const auto [first, count] = seeds(60);
  for (std::uint64_t seed = first; seed < first + count; ++seed) compare_all(seed, Dtype::float64, 1e-12);
}

TEST_CASE("random programs: the same in float32, loosely") {
  const auto [first, count] = seeds(15);
  for (std::uint64_t seed = first; seed < first + count; ++seed) compare_all(seed, Dtype::float32, 2e-3);
}

TEST_CASE("random programs: no two buffers of the arena overlap while both are alive") {
  const auto [first, count] = seeds(60);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomProgram program = random_program(seed, Dtype::float32);
    PlayerOptions options;
    options.carries = program.carries;
    const Player player(program.tape, program.outputs, options);
    const Plan& plan = player.plan();
    std::vector<Plan::Buffer> arena;
    for (const Plan::Buffer& buffer : plan.buffers)
      if (buffer.kind == "arena" && buffer.bytes > 0) arena.push_back(buffer);
    for (std::size_t i = 0; i < arena.size(); ++i) {
      CHECK(arena[i].offset % 64 == 0);
      CHECK(arena[i].offset + arena[i].bytes <= plan.arena_bytes);
      for (std::size_t k = 0; k < i; ++k) {
        const bool in_time = arena[i].first <= arena[k].last && arena[k].first <= arena[i].last;
        const bool in_space =
            arena[i].offset < arena[k].offset + arena[k].bytes && arena[k].offset < arena[i].offset + arena[i].bytes;
        INFO("seed " << seed << ": " << arena[i].name << " and " << arena[k].name);
        CHECK_FALSE((in_time && in_space));
      }
    }
  }
}
