// tapes: draws random programs and plays each in many ways, which must agree.
// The objects that are shared with the suites include doctest.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <string>

#include "base/bytes/encodings.hpp"
#include "drawer.hpp"
#include "oracles.hpp"
#include "print.hpp"
#include "shrink.hpp"
#include "trial.hpp"

using namespace xtape;
using namespace xtape::fuzz;

namespace {
constexpr const char* usage =
    "tapes [--first N] [--count M] [--minutes K | --seconds K] [--op NAME] [--all | --nested | --constants]\n"
    "      [--keep]                                                    draws and checks the programs of M seeds\n"
    "tapes --seed N [--op NAME]                                        prints one program and runs every check\n"
    "tapes --ops [--first N] [--count M]                               counts how often ops are drawn\n"
    "tapes --digests [--first N] [--count M]                           prints hashes of plans and results, to compare\n"
    "                                                                  two builds; for one seed, its plans\n"
    "\n"
    "  --op NAME   draws this op often\n"
    "  --all       runs every check on every program; otherwise each seed runs some of them\n"
    "  --nested    runs only the check of nested transformations, on every program\n"
    "  --constants runs only the checks of derivatives by constants, on every program\n"
    "  --keep      continues after a failure\n";

constexpr double unlimited = 1e9;

struct Wanted {
  std::uint64_t first = 0, count = 0;  ///< count 0: 1000, or as many as `minutes` allows.
  double minutes = unlimited;
  bool all = false, nested = false, constants = false, one = false, keep = false, ops = false, digests = false;
  DrawOptions draw;
};

/// Returns false if the arguments are invalid.
bool read(int count, char** arguments, Wanted& wanted) {
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const std::map<std::string, bool*> flags = {
        {"--all", &wanted.all},   {"--nested", &wanted.nested}, {"--constants", &wanted.constants},
        {"--keep", &wanted.keep}, {"--ops", &wanted.ops},       {"--digests", &wanted.digests}};
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    if (i + 1 == count) return false;
    const std::string value = arguments[++i];
    if (name == "--first")
      wanted.first = std::stoull(value);
    else if (name == "--count")
      wanted.count = std::stoull(value);
    else if (name == "--minutes")
      wanted.minutes = std::stod(value);
    else if (name == "--seconds")
      wanted.minutes = std::stod(value) / 60;
    else if (name == "--op")
      wanted.draw.focus = value;
    else if (name == "--seed")
      wanted.one = true, wanted.first = std::stoull(value), wanted.count = 1;
    else
      return false;
  }
  return true;
}

/// Draws and checks a program. If a check fails, prints the smallest program that fails it.
bool agrees(std::uint64_t seed, const Wanted& wanted) {
  const Program program = draw(seed, wanted.draw);
  if (wanted.one) std::cout << as_cpp(program, {"seed " + std::to_string(seed), ""});
  const std::vector<Check> checks = wanted.nested      ? std::vector{nested(seed)}
                                    : wanted.constants ? std::vector{by_constants(seed), nested_by_constants(seed)}
                                    : wanted.one || wanted.all ? all_checks()
                                                               : checks_for(seed);
  const auto failure = first_failure(recipe_of(program), checks);
  if (!failure) return true;
  std::cout << "seed " << seed << (wanted.draw.focus.empty() ? "" : " (--op " + wanted.draw.focus + ")") << ": "
            << failure->check << ": " << failure->what << std::endl;
  const Shrunk shrunk = shrink(program, *failure);
  std::cout << "\nshrunk from " << calls_in(program.steps) << " calls to " << calls_in(shrunk.program.steps) << ": "
            << shrunk.failure.what << "\n\n"
            << as_cpp(shrunk.program, {"seed " + std::to_string(seed), shrunk.failure.check}) << "\n"
            << as_definition(shrunk.program) << std::endl;
  return false;
}

/// Prints a line for each way of playing a program: hashes of the plan and of the results of all plays.
void print_digests(std::uint64_t seed, const Wanted& wanted) {
  const Recipe recipe = recipe_of(draw(seed, wanted.draw));
  Trial trial(recipe);
  std::vector<Way> ways = other_ways();
  ways.insert(ways.begin(), {reference(), all_on(2)});
  for (const Way& way : ways) {
    const Played& played = trial.played(way);
    std::ostringstream plan;
    plan << played.plan;
    std::vector<std::uint64_t> hashes;
    for (const auto& values : played.values)
      for (const Array& value : values) hashes.push_back(checksum_of(value.data(), value.bytes()));
    std::cout << "seed " << seed << ", " << way.name << ": plan " << std::hex
              << checksum_of_piece(plan.str().data(), plan.str().size()) << ", values " << checksum_of_pieces(hashes)
              << std::dec << "\n";
    if (wanted.one) std::cout << plan.str();
  }
}
}  // namespace

int main(int count, char** arguments) {
  Wanted wanted;
  try {
    if (!read(count, arguments, wanted)) {
      std::cerr << usage;
      return 2;
    }
  } catch (const std::exception&) {
    std::cerr << usage;
    return 2;
  }
  if (wanted.count == 0) wanted.count = wanted.minutes < unlimited ? std::numeric_limits<std::uint64_t>::max() : 1000;
  if (wanted.digests) {
    for (std::uint64_t i = 0; i < wanted.count; ++i) print_digests(wanted.first + i, wanted);
    return 0;
  }
  if (wanted.ops) {
    std::map<std::string, std::size_t> counts;
    for (std::uint64_t i = 0; i < wanted.count; ++i)
      for (const auto& [op, times] : ops_in(draw(wanted.first + i, wanted.draw).steps)) counts[op] += times;
    for (const auto& [name, row] : ops().ops()) counts[name] += 0;
    for (const auto& [op, times] : counts) std::cout << times << ' ' << op << '\n';
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto minutes = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 60;
  };
  std::uint64_t tried = 0, failed = 0;
  while (tried < wanted.count && minutes() < wanted.minutes && (failed == 0 || wanted.keep))
    failed += agrees(wanted.first + tried++, wanted) ? 0 : 1;
  std::cout << tried << " tapes, " << failed << " disagreements, " << minutes() << " minutes\n";
  return failed == 0 ? 0 : 1;
}
