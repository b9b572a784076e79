// The gradient of a long scan that keeps only the states between segments (ScanOptions::checkpoint_every): memory and
// time of a GRU layer (Cho et al., 2014), float32, with the gradients of its input and weights. Each round plays every
// choice once, in turn; the best round counts.
//
// usage: scans [--b ROWS] [--t STEPS] [--u UNITS] [--rounds N] [--threads N] [--outside]
//   --outside  multiply the input by its weights before the scan, not in the cell
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
struct Words {
  std::int64_t b = 16, t = 2000, u = 256;
  int rounds = 5, threads = 0;
  bool outside = false;
};

struct Layer {
  Tape tape;
  Vars outputs;
  std::vector<Array> arrays;
  std::vector<Feed> feeds;

  Layer(const Words& words, const std::vector<std::int64_t>& checkpoint_every) {
    const std::int64_t u = words.u;
    const Var x = input("x", {words.b, words.t, u}), first = input("first", {words.b, u});
    const Var w = input("w", {u, 3 * u}), recurrent = input("recurrent", {u, 3 * u}), bias = input("bias", {3 * u});
    const auto projected = [&](const Var& of) { return matmul(of, w) + bias; };
    const ScanFunction cell = [&](const Vars& in, const Vars& h) {
      const Vars of_x = split(words.outside ? in[0] : projected(in[0]), 3, 1);
      const Vars of_h = split(matmul(h[0], recurrent), 3, 1);
      const Var r = sigmoid(of_x[0] + of_h[0]), z = sigmoid(of_x[1] + of_h[1]);
      const Var next = z * h[0] + (1 - z) * tanh(of_x[2] + r * of_h[2]);
      return std::make_pair(Vars{next}, Vars{next});
    };
    ScanOptions options;
    options.checkpoint_every = checkpoint_every;
    const Var ys = scan(cell, {words.outside ? projected(x) : x}, {first}, options).outputs[0];
    const Var loss = mean(square(ys));
    outputs = grad(loss, {x, w, recurrent, bias});
    outputs.push_back(loss);
  }

  Var input(const char* name, const Shape& shape) {
    Array values(Dtype::float32, shape);
    for (std::int64_t i = 0; i < values.count(); ++i)
      values.as<float>()[i] = 0.002F * static_cast<float>((i * 7919) % 101 - 50);
    const Var var = tape.input(name, shape);
    arrays.push_back(values);
    feeds.emplace_back(var, arrays.back());
    return var;
  }
};

struct Choice {
  const char* name;
  std::vector<std::int64_t> checkpoint_every;
};
const std::vector<Choice> choices = {{"none", {}},   {"10", {10}},   {"20", {20}},          {"45", {45}},
                                     {"100", {100}}, {"200", {200}}, {"200, 20", {200, 20}}};

void measure(const Words& words) {
  struct Times {
    double wall = 1e9, processor = 1e9;
  };
  PlayerOptions options;
  options.threads = words.threads;
  std::vector<Layer> layers;
  std::vector<Player> players;
  for (const Choice& choice : choices) {
    layers.emplace_back(words, choice.checkpoint_every);
    players.emplace_back(layers.back().tape, layers.back().outputs, options);
  }
  std::vector<Times> best(choices.size());
  for (int round = 0; round <= words.rounds; ++round)  // the first one warms up
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const double start = bench::seconds();
      const std::clock_t before = std::clock();
      players[i].play(layers[i].feeds);
      if (round == 0) continue;
      best[i].wall = std::min(best[i].wall, bench::seconds() - start);
      best[i].processor =
          std::min(best[i].processor, static_cast<double>(std::clock() - before) / static_cast<double>(CLOCKS_PER_SEC));
    }
  const auto arena = [&](std::size_t i) { return static_cast<double>(players[i].plan().arena_bytes); };
  for (std::size_t i = 0; i < choices.size(); ++i)
    std::printf("checkpoint_every %-8s arena %8.2f MiB, %5.1f %%; %8.1f ms, %+5.1f %%; processor %8.1f ms, %+5.1f %%\n",
                choices[i].name, arena(i) / (1 << 20), 100 * arena(i) / arena(0), best[i].wall * 1e3,
                100 * (best[i].wall / best[0].wall - 1), best[i].processor * 1e3,
                100 * (best[i].processor / best[0].processor - 1));
}

Words parse(int count, char** arguments) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto value = [&]() -> std::int64_t {
      if (i + 1 >= count) throw Error(word + " needs a value");
      return std::max<std::int64_t>(1, std::atoll(arguments[++i]));
    };
    if (word == "--b") {
      words.b = value();
    } else if (word == "--t") {
      words.t = value();
    } else if (word == "--u") {
      words.u = value();
    } else if (word == "--rounds") {
      words.rounds = static_cast<int>(value());
    } else if (word == "--threads") {
      words.threads = static_cast<int>(value());
    } else if (word == "--outside") {
      words.outside = true;
    } else {
      throw Error("usage: scans [--b ROWS] [--t STEPS] [--u UNITS] [--rounds N] [--threads N] [--outside]");
    }
  }
  return words;
}
}  // namespace

int main(int count, char** arguments) {
  try {
    measure(parse(count, arguments));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
