// Predictions for more cores beside measurements: training steps and generation of the workloads, as if by some numbers
// of threads, and by real threads where this machine has so many. In each round, real and simulated threads take turns.
//
// usage: many_cores [--only NAME[,NAME]] [--threads N[,N]] [--rounds N] [--steps N] [--bandwidth GB/s] [--meeting US]
//                   [--cache MiB] [--table] [--sites] [--bits], which compares the bits of every value with those of
//                   one
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>

#include "bench.hpp"
#include "training_step.hpp"
#include "xtape/decode.hpp"
#include "xtape/team_profile.hpp"
#include "xtape/xtape.hpp"

namespace {

using namespace xtape;
using bench::Workload;

struct Words {
  std::vector<std::string> only;
  std::vector<int> threads = {2, 8, 16, 32, 64};
  int rounds = 3, steps = 3;
  double bandwidth = 0, meeting = 0, cache = 0;  // 0: measured here
  bool table = false, sites = false, bits = false;
};

/// Repeats work; calls warm() after the first time, which does not count.
using Repeated = std::function<void(const std::function<void()>& warm)>;

/// Training steps on so many threads.
Repeated training(bench::TrainingStep& of, int threads, int steps) {
  struct Made {
    Player player;
    Optimizer optimizer;
    std::vector<ArrayView> gradients = {};
  };
  PlayerOptions options;
  options.threads = threads;
  const auto made = std::make_shared<Made>(
      Made{Player(of.tape, of.outputs, options), Optimizer(of.model.weights(), bench::adamw(), threads)});
  const auto feeds = std::make_shared<std::vector<Feed>>(of.feeds());
  return [&of, made, feeds, steps](const std::function<void()>& warm) {
    for (int i = 0; i <= steps; ++i) {
      made->player.play(*feeds, static_cast<std::uint64_t>(i));
      made->gradients.clear();
      for (std::size_t k = 0; k + 1 < of.outputs.size(); ++k)
        made->gradients.push_back(made->player.view(of.outputs[k]));
      made->optimizer.update(made->gradients, 1e-3, 1, 1.0);
      if (i == 0) warm();
    }
  };
}

/// Generation of `steps` tokens for one row, after eight that do not count.
Repeated decoding(Model& model, const Workload& w, int threads, int steps) {
  constexpr int first = 8;
  PredictorOptions options;
  options.limit = w.sizes.at("t");
  options.player.emplace();
  options.player->threads = threads;
  const auto predictor = std::make_shared<Predictor>(model, "logits", options);
  return [predictor, &w, steps](const std::function<void()>& warm) {
    GenerateOptions generating;
    generating.context = w.sizes.at("t");
    generating.tokens = first + steps;
    generating.sampling.temperature = 0;
    int count = 0;
    generating.each = [&](std::int32_t) {
      if (++count == first) warm();
      return false;
    };
    generate(*predictor, Tokens(16, 11), generating);
  };
}

/// Returns the seconds of one repetition by real threads.
double measured(const Repeated& run, int steps) {
  double start = 0;
  run([&] { start = bench::seconds(); });
  return (bench::seconds() - start) / steps;
}

std::unique_ptr<TeamProfile> profiled(const Repeated& run, const TeamMachine& machine) {
  auto profile = std::make_unique<TeamProfile>(machine);
  run([&] { profile->forget(); });
  profile->note("(rest)");
  return profile;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void predict(const Workload& w, const Words& words, int steps, const std::function<Repeated(int threads)>& on) {
  const Repeated one = on(1);
  for (const int threads : words.threads) {
    TeamMachine machine = team_machine(threads);
    if (words.bandwidth > 0) machine.bandwidth = words.bandwidth * 1e9;
    if (words.meeting > 0) machine.meeting = words.meeting * 1e-6;
    if (words.cache > 0) machine.cache = static_cast<std::size_t>(words.cache * (1 << 20));
    const Repeated team = on(threads);
    const bool real = threads <= static_cast<int>(std::thread::hardware_concurrency());
    std::vector<double> predicted, alone, truth;
    std::string table;
    for (int round = 0; round < words.rounds; ++round) {
      truth.push_back(real ? measured(team, steps) : 0);
      TeamPrediction found;
      {
        const auto of_team = profiled(team, machine);
        const auto of_one = profiled(one, TeamMachine{});
        found = prediction(*of_one, *of_team, steps, words.sites);
      }
      predicted.push_back(found.seconds);
      alone.push_back(found.one);
      std::ostringstream text;
      text << found;
      table = text.str();
    }
    std::printf("{\"workload\": \"%s\", \"threads\": %d, \"ms\": %.3f, \"one_ms\": %.3f, \"efficiency\": %.3f",
                w.name.c_str(), threads, median(predicted) * 1e3, median(alone) * 1e3,
                median(alone) / median(predicted) / threads);
    if (real)
      std::printf(", \"measured_ms\": %.3f, \"ratio\": %.3f", median(truth) * 1e3, median(predicted) / median(truth));
    std::printf("}\n%s", words.table ? table.c_str() : "");
    std::fflush(stdout);
  }
}

/// Returns the digests of a training step by a simulated team.
std::vector<Digest> digests(const bench::TrainingStep& step, int threads) {
  PlayerOptions options;
  options.threads = threads;
  options.digests = true;
  Player player(step.tape, step.outputs, options);
  const TeamProfile team(TeamMachine{.threads = threads});
  player.play(step.feeds(), 1);
  return player.digests();
}

void compare_bits(const Workload& w, const Words& words) {
  if (w.decodes) return;
  const bench::TrainingStep step(w);
  const std::vector<Digest> one = digests(step, 1);
  for (const int threads : words.threads) {
    const std::vector<Digest> many = digests(step, threads);
    std::size_t same = 0;
    while (same < one.size() && same < many.size() && one[same].hash == many[same].hash) ++same;
    if (same < std::max(one.size(), many.size()))
      throw Error(w.name + ": other bits on " + std::to_string(threads) + " threads at value " + std::to_string(same));
    std::printf("{\"workload\": \"%s\", \"threads\": %d, \"same_values\": %zu}\n", w.name.c_str(), threads, same);
    std::fflush(stdout);
  }
}

void run(const Workload& w, const Words& words) {
  if (words.bits) return compare_bits(w, words);
  if (w.decodes) {
    Model model = bench::make_model(w);
    const int tokens = 16 * words.steps;
    return predict(w, words, tokens, [&](int threads) { return decoding(model, w, threads, tokens); });
  }
  bench::TrainingStep step(w);
  predict(w, words, words.steps, [&](int threads) { return training(step, threads, words.steps); });
}

template <class Add>
void split(const std::string& text, const Add& add) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) add(part);
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
      split(value(), [&](const std::string& name) { words.only.push_back(name); });
    } else if (word == "--threads") {
      words.threads.clear();
      split(value(), [&](const std::string& number) { words.threads.push_back(std::atoi(number.c_str())); });
    } else if (word == "--rounds") {
      words.rounds = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--steps") {
      words.steps = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--bandwidth") {
      words.bandwidth = std::atof(value().c_str());
    } else if (word == "--meeting") {
      words.meeting = std::atof(value().c_str());
    } else if (word == "--cache") {
      words.cache = std::atof(value().c_str());
    } else if (word == "--table") {
      words.table = true;
    } else if (word == "--sites") {
      words.table = words.sites = true;
    } else if (word == "--bits") {
      words.bits = true;
    } else {
      throw Error("the usage is at the top of tests/bench/many_cores.cpp");
    }
  }
  if (words.only.empty())
    for (const Workload& w : bench::all_workloads()) words.only.push_back(w.name);
  return words;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Words words = parse(count, arguments);
    for (const std::string& name : words.only) bench::apart([&] { run(bench::workload_named(name), words); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_cores: %s\n", error.what());
    return 1;
  }
}
