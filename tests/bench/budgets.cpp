// Training steps of the workloads within memory budgets: memory, time and bits.
//
// usage: budgets [--only NAME[,NAME]] [--budgets N] [--steps N] [--threads N] [--curve]
//   --budgets N  so many budgets, from the memory without recomputation down to the smallest possible (default: 10)
//   --curve      print what the planner chooses from instead, without playing
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "bench.hpp"
#include "training_step.hpp"
#include "xtape/player.hpp"

using namespace xtape;
using bench::Workload;

namespace {
struct Words {
  std::vector<std::string> only;
  int budgets = 10, steps = 5, threads = 0;
  bool curve = false;
};

/// A hash of the bits of all outputs.
std::uint64_t hash_of(const Player& player, const Vars& outputs) {
  std::uint64_t hash = 0;
  for (const Var& output : outputs) {
    const Array array(player.view(output));
    const auto* bytes = static_cast<const unsigned char*>(array.data());
    for (std::size_t i = 0; i < array.bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ULL;
  }
  return hash;
}

/// Plays one workload within a budget (0: none) and prints a line of results. `arena_all` is the arena without a
/// budget.
void play(const Workload& w, const Words& words, std::size_t memory, std::size_t arena_all) {
  const bench::TrainingStep recorded(w);
  PlayerOptions options;
  options.threads = words.threads;
  options.memory = memory;
  const double before = bench::seconds();
  Player player(recorded.tape, recorded.outputs, options);
  const double planned = bench::seconds() - before;
  const std::vector<Feed> feeds = recorded.feeds();
  std::vector<double> times;
  for (int step = 0; step < words.steps + 2; ++step) {
    const double start = bench::seconds();
    player.play(feeds, 7);
    if (step >= 2) times.push_back(bench::seconds() - start);
  }
  std::sort(times.begin(), times.end());
  const Plan& plan = player.plan();
  double predicted = 0;
  int again = 0;
  for (const Plan::Step& step : plan.steps) {
    predicted += step.seconds;
    again += step.again ? 1 : 0;
  }
  const auto mebibytes = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::printf(
      "{\"workload\": \"%s\", \"memory_mb\": %.2f, \"plan_mb\": %.2f, \"arena_mb\": %.2f, \"arena_share\": %.3f, "
      "\"again\": %d, \"steps\": %zu, \"predicted_ms\": %.3f, \"ms\": %.3f, \"peak_mb\": %ld, \"planning_s\": %.3f, "
      "\"bits\": \"%016llx\"}\n",
      w.name.c_str(), mebibytes(memory), mebibytes(plan.peak_bytes()), mebibytes(plan.arena_bytes),
      static_cast<double>(plan.arena_bytes) / static_cast<double>(arena_all), again, plan.steps.size(), predicted * 1e3,
      times[times.size() / 2] * 1e3, bench::peak_mebibytes(), planned,
      static_cast<unsigned long long>(hash_of(player, recorded.outputs)));
  std::fflush(stdout);
}

/// The curve of a workload, made in a child process, so that its memory is in no peak of a play.
std::vector<MemoryPoint> curve_of(const Workload& w, const Words& words) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("cannot make a pipe");
  bench::apart([&] {
    const bench::TrainingStep recorded(w);
    PlayerOptions options;
    options.threads = words.threads;
    const double start = bench::seconds();
    const std::vector<MemoryPoint> curve = memory_curve(recorded.tape, recorded.outputs, options);
    std::fprintf(stderr, "%s: %zu ways in %.3f s\n", w.name.c_str(), curve.size(), bench::seconds() - start);
    if (write(ends[1], curve.data(), curve.size() * sizeof curve[0]) < 0) throw Error("cannot write to a pipe");
  });
  close(ends[1]);
  std::vector<MemoryPoint> curve;
  for (MemoryPoint point; read(ends[0], &point, sizeof point) == static_cast<ssize_t>(sizeof point);)
    curve.push_back(point);
  close(ends[0]);
  return curve;
}

void run(const Workload& w, const Words& words) {
  const std::vector<MemoryPoint> curve = curve_of(w, words);
  const MemoryPoint &first = curve.front(), &last = curve.back();
  if (words.curve) {
    for (const MemoryPoint& point : curve)
      std::printf("%s: arena %8.2f MiB, %5.1f %%, time +%.2f %%, %lld steps again\n", w.name.c_str(),
                  static_cast<double>(point.arena_bytes) / (1 << 20),
                  100 * static_cast<double>(point.arena_bytes) / static_cast<double>(first.arena_bytes),
                  100 * (point.seconds / first.seconds - 1), static_cast<long long>(point.again));
    return;
  }
  bench::apart([&] { play(w, words, 0, first.arena_bytes); });
  for (int i = 0; i < words.budgets; ++i) {
    const std::size_t memory = last.bytes + (first.bytes - last.bytes) / static_cast<std::size_t>(words.budgets) *
                                                static_cast<std::size_t>(words.budgets - 1 - i);
    bench::apart([&] { play(w, words, memory, first.arena_bytes); });
  }
}

Words parse(int count, char** arguments) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= count) throw Error(word + " needs a value");
      return arguments[++i];
    };
    if (word == "--only") {
      std::istringstream names(value());
      for (std::string name; std::getline(names, name, ',');) words.only.push_back(name);
    } else if (word == "--budgets") {
      words.budgets = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--steps") {
      words.steps = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--threads") {
      words.threads = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--curve") {
      words.curve = true;
    } else {
      throw Error("usage: budgets [--only NAME[,NAME]] [--budgets N] [--steps N] [--threads N] [--curve]");
    }
  }
  if (words.only.empty())
    for (const Workload& w : bench::all_workloads())
      if (!w.decodes) words.only.push_back(w.name);
  return words;
}
}  // namespace

int main(int count, char** arguments) {
  try {
    const Words words = parse(count, arguments);
    for (const std::string& name : words.only) run(bench::workload_named(name), words);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "budgets: %s\n", error.what());
    return 1;
  }
}
