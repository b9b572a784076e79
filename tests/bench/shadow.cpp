// The float64 shadow of a training step beside the step itself: time and peak memory.
//
// usage: shadow [NAME …]   workloads; all that train by default
#include <algorithm>
#include <cstdio>

#include "bench.hpp"
#include "training_step.hpp"
#include "xtape/inspect.hpp"

using namespace xtape;

namespace {
constexpr int rounds = 5;

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print(const bench::Workload& w, const char* what, const std::vector<double>& times) {
  std::printf("%-16s %-7s %9.1f ms %6ld MiB\n", w.name.c_str(), what, median(times) * 1e3, bench::peak_mebibytes());
}

void play(const bench::Workload& w) {
  const bench::TrainingStep step(w);
  Player player(step.tape, step.outputs);
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    const double start = bench::seconds();
    player.play(step.feeds());
    if (round > 0) times.push_back(bench::seconds() - start);
  }
  print(w, "step", times);
}

void play_shadow(const bench::Workload& w) {
  const bench::TrainingStep step(w);
  RecordedPlay play{step.tape, step.outputs, {}, {}};
  for (std::size_t i = 0; i < step.fed.size(); ++i) play.inputs.add(step.inputs[i].name, Array(step.fed[i]));
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double start = bench::seconds();
    shadow(play);
    times.push_back(bench::seconds() - start);
  }
  print(w, "shadow", times);
}
}  // namespace

int main(int count, char** arguments) {
  try {
    std::vector<std::string> names(arguments + 1, arguments + count);
    if (names.empty())
      for (const bench::Workload& w : bench::all_workloads())
        if (!w.decodes) names.push_back(w.name);
    for (const std::string& name : names) {
      const bench::Workload w = bench::workload_named(name);
      bench::apart([&] { play(w); });
      bench::apart([&] { play_shadow(w); });
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shadow: %s\n", error.what());
    return 1;
  }
}
