// The time of transformations (docs/reference/transformations.md) on a network of three layers, in milliseconds. Each
// is a play of its own; transformations.py compares them with JAX and PyTorch.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "bench.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
constexpr std::int64_t batch = 64, in = 100, hidden = 512, out = 100;

struct Network {
  Tape tape;
  Var x = tape.input("x", {batch, in}), one = tape.input("one", {in}), direction = tape.input("direction", {batch, in}),
      along = tape.input("along", {in}), first = tape.input("first", {in, hidden}),
      second = tape.input("second", {hidden, hidden}), third = tape.input("third", {hidden, out});

  Var forward(const Var& of) const { return matmul(tanh(matmul(tanh(matmul(of, first)), second)), third); }
  Var loss(const Var& of) const { return sum(square(forward(of))); }
};

struct Transformation {
  const char* name;
  std::function<Vars(const Network&)> record;
};
const Transformation transformations[] = {
    {"forward", [](const Network& n) { return Vars{n.forward(n.x)}; }},
    {"forward_of_one", [](const Network& n) { return Vars{n.forward(n.one)}; }},
    {"jvp",
     [](const Network& n) {
       const Var y = n.forward(n.x);
       return Vars{y, jvp({y}, {n.x}, {n.direction})[0]};
     }},
    {"vmap", [](const Network& n) { return vmap([&](const Vars& x) { return Vars{n.forward(x[0])}; }, {n.x}); }},
    {"gradient",
     [](const Network& n) {
       return grad(n.loss(n.x), {n.first, n.second, n.third});
     }},
    {"gradient_per_example",
     [](const Network& n) {
       return vmap([&](const Vars& x) { return grad(n.loss(x[0]), {n.first, n.second, n.third}); }, {n.x});
     }},
    {"jacobian", [](const Network& n) { return Vars{jacobian(n.forward(n.one), n.one)}; }},
    {"hessian", [](const Network& n) { return Vars{hessian(n.loss(n.one), n.one)}; }},
    {"hvp", [](const Network& n) { return hvp(n.loss(n.one), {n.one}, {n.along}); }}};

Array filled(const Var& var, double scale) {
  Array array(Dtype::float32, var.shape());
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < array.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    array.as<float>()[i] = static_cast<float>(scale * (state / 4294967296.0 - 0.5));
  }
  return array;
}

void measure(const Transformation& transformation, int threads) {
  const Network network;
  PlayerOptions options;
  options.threads = threads;
  Player player(network.tape, transformation.record(network), options);
  std::vector<Feed> feeds;
  for (const Var& var : {network.x, network.one, network.direction, network.along})
    feeds.emplace_back(var, filled(var, 2.0));
  for (const Var& var : {network.first, network.second, network.third}) feeds.emplace_back(var, filled(var, 0.2));
  std::printf("%s %.4f\n", transformation.name, bench::best_of(1.0, [&] { player.play(feeds); }));
  std::fflush(stdout);
}
}  // namespace

int main(int count, char** words) {
  if (count != 3 || std::atoi(words[2]) < 1) {
    std::fprintf(stderr, "usage: transformations NAME|all THREADS\n");
    return 1;
  }
  for (const Transformation& each : transformations)
    if (std::string(words[1]) == "all" || std::string(words[1]) == each.name) measure(each, std::atoi(words[2]));
  return 0;
}
