/// The predicted time of a team of threads beside the measured one.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench.hpp"
#include "xtape/team_profile.hpp"

namespace bench {

/// Prints the predicted and the measured milliseconds of a step on so many threads, medians of three rounds in turn.
/// `on(threads)` returns a function that makes one step.
inline void print_predicted(const std::string& name, int threads, int steps,
                            const std::function<std::function<void()>(int threads)>& on) {
  const auto one = on(1), team = on(threads);
  const auto profiled = [steps](const std::function<void()>& step, const xtape::TeamMachine& machine) {
    auto profile = std::make_unique<xtape::TeamProfile>(machine);
    step();
    profile->forget();
    for (int i = 0; i < steps; ++i) step();
    profile->note("(rest)");
    return profile;
  };
  const xtape::TeamMachine machine = xtape::team_machine(threads);
  std::vector<double> predicted, measured, ratios;
  for (int round = 0; round < 3; ++round) {
    team();
    const double start = seconds();
    for (int i = 0; i < steps; ++i) team();
    measured.push_back((seconds() - start) / steps * 1e3);
    const auto of_team = profiled(team, machine), of_one = profiled(one, xtape::TeamMachine{});
    predicted.push_back(prediction(*of_one, *of_team, steps).seconds * 1e3);
    ratios.push_back(predicted.back() / measured.back());
  }
  for (auto* values : {&predicted, &measured, &ratios}) std::sort(values->begin(), values->end());
  std::printf("%s: predicted %.3f ms, measured %.3f ms on %d threads, ratio %.3f\n", name.c_str(), predicted[1],
              measured[1], threads, ratios[1]);
}

}  // namespace bench
