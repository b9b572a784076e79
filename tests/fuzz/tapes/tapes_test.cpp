// Runs new programs, and tests the fuzzer: it draws every op, is reproducible, and finds and shrinks failures.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "drawer.hpp"
#include "oracles.hpp"
#include "print.hpp"
#include "shrink.hpp"
#include "xtape/ops.hpp"

using namespace xtape;
using namespace xtape::fuzz;

namespace {
constexpr std::uint64_t fresh = 2000, many_threads = 200;

std::string recorded(const Program& program) {
  Subject subject(program.mode, Floats::as_written);
  record(program, subject);
  std::ostringstream out;
  out << subject.tape;
  return out.str();
}
}  // namespace

TEST_CASE("tapes: random programs give the same results in all ways of playing") {
  for (std::uint64_t seed = 0; seed < fresh; ++seed) {
    const Program program = draw(seed);
    const auto failure = first_failure(recipe_of(program), checks_for(seed));
    CHECK(!failure);
    if (!failure) continue;
    const Shrunk shrunk = shrink(program, *failure);
    MESSAGE("seed " << seed << ": " << failure->check << ": " << failure->what << "\n"
                    << as_cpp(shrunk.program, {"seed " + std::to_string(seed), shrunk.failure.check}) << "\n"
                    << as_definition(shrunk.program));
    break;
  }
}

TEST_CASE("tapes: random programs give the same results on 64 threads, real and simulated, as on one") {
  std::string failed;
  std::thread([&] {  // a thread of its own, whose many helpers end with it
    for (std::uint64_t seed = 0; seed < many_threads && failed.empty(); ++seed) {
      const Program program = draw(seed);
      const std::vector<Check> checks = {same_bits_on_threads(all_on(), 64), same_bits_on_simulated(64)};
      if (const auto failure = first_failure(recipe_of(program), checks))
        failed = "seed " + std::to_string(seed) + ": " + failure->check + ": " + failure->what;
    }
  })
      .join();
  CHECK_MESSAGE(failed.empty(), failed);
}

TEST_CASE("tapes: random programs call every op, ops of users, scans, checkpoints and gradients") {
  std::map<std::string, std::size_t> counts;
  for (std::uint64_t seed = 0; seed < fresh; ++seed)
    for (const auto& [op, times] : ops_in(draw(seed).steps)) counts[op] += times;
  for (const auto& each : ops().ops()) {
    const auto& name = each.first;
    CAPTURE(name);
    CHECK((counts[name] >= 5 || !is_drawn(name)));
  }
  for (const char* name : {"scan", "checkpoint", "grad"}) CHECK(counts[name] >= 50);
}

TEST_CASE("tapes: random programs have conditional scans") {
  std::size_t conditional = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    if (recorded(draw(seed)).find("condition=0") != std::string::npos) ++conditional;
  CHECK(conditional >= 5);
}

TEST_CASE("tapes: a seed determines the program, and the program determines the tape") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Program first = draw(seed), second = draw(seed);
    CHECK(as_cpp(first, {}) == as_cpp(second, {}));
    CHECK(recorded(first) == recorded(second));
    CHECK(as_definition(first) == as_definition(second));
  }
}
