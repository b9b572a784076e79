// Executables: players that share a plan, and compiled functions that share plans.
#include <doctest/doctest.h>

#include <array>
#include <latch>
#include <optional>
#include <string>
#include <thread>

#include "allocations.hpp"
#include "xtape/compiled.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// Products, attention, dropout, fused elementwise ops, folded constants, and a scan with its gradient and a scan in
/// its cell.
struct SharedNetwork {
  Tape tape;
  Var x = tape.input("x", {2, 6, 8});
  Vars outputs;

  SharedNetwork() {
    const auto weight = [&](const char* name, const Shape& shape) {
      Array values(Dtype::float32, shape);
      for (std::int64_t i = 0; i < values.count(); ++i)
        values.as<float>()[i] = static_cast<float>((i * 7 + shape.back()) % 13 - 6) / 16;
      return tape.parameter(name, values);
    };
    const Var w = weight("w", {8, 8}), u = weight("u", {8, 8}), rate = tape.constant({0.25, 0.5, 0.75});
    const Var q = matmul(x, w);                                                           // [2, 6, 8]
    const Var scores = softmax(matmul(q, transpose(x, {0, 2, 1})) / std::sqrt(8.0), -1);  // [2, 6, 6]
    const Var attended = dropout(matmul(scores, x), 0.25) * sum(square(rate) * 2);        // [2, 6, 8]
    const ScanFunction inner = [](const Vars& in, const Vars& h) {
      const Var next = tanh(in[0] + 0.5 * h[0]);  // [2]
      return std::pair<Vars, Vars>{{next}, {next}};
    };
    const ScanFunction cell = [&](const Vars& in, const Vars& h) {
      const Var next = tanh(matmul(in[0], u) + matmul(h[0], w));             // [2, 8]
      const Var along = scan(inner, {next}, {zeros(tape, {2})}).outputs[0];  // [2, 8]
      return std::pair<Vars, Vars>{{next * along}, {next}};
    };
    const Var steps = scan(cell, {attended}, {zeros(tape, {2, 8})}).outputs[0];  // [2, 6, 8]
    const Var loss = mean(square(steps));
    outputs = {loss, steps};
    for (const Var& gradient : grad(loss, {w, u})) outputs.push_back(gradient);
  }
};

Array input_of(int seed) {
  Array values(Dtype::float32, {2, 6, 8});
  for (std::int64_t i = 0; i < values.count(); ++i)
    values.as<float>()[i] = static_cast<float>((i * 11 + seed * 29) % 31 - 15) / 16;
  return values;
}

/// The bits of all outputs of some plays.
std::vector<std::string> bits_of(Player& player, const Var& x, const Vars& outputs, int plays) {
  std::vector<std::string> found;
  for (int i = 0; i < plays; ++i) {
    player.play({{x, input_of(i)}});
    for (const Var& output : outputs) {
      const Array values(player.view(output));
      found.emplace_back(static_cast<const char*>(values.data()), values.bytes());
    }
  }
  return found;
}
}  // namespace

TEST_CASE("players of one executable play at once and give the bits of a player alone") {
  for (const int threads : {1, 2}) {
    const SharedNetwork network;
    PlayerOptions options;
    options.threads = threads;
    Player alone(network.tape, network.outputs, options);
    constexpr int plays = 20;
    const std::vector<std::string> expected = bits_of(alone, network.x, network.outputs, plays);
    CHECK(expected[0] != expected[network.outputs.size()]);  // other inputs, other draws

    const Executable executable = compile(network.tape, network.outputs, options);
    std::array<std::vector<std::string>, 3> found;
    std::vector<std::thread> running;
    std::latch begin(static_cast<std::ptrdiff_t>(found.size()));
    for (auto& own : found)
      running.emplace_back([&] {
        Player player(executable);
        begin.arrive_and_wait();
        own = bits_of(player, network.x, network.outputs, plays);
      });
    for (std::thread& thread : running) thread.join();
    for (const auto& own : found) CHECK(own == expected);
  }
}

TEST_CASE("an executable and its players need nothing of the program that made them") {
  std::optional<Executable> executable;
  std::optional<SharedNetwork> network(std::in_place);
  const Var x = network->x;
  const Vars outputs = network->outputs;
  Player alone(network->tape, outputs);
  const std::vector<std::string> expected = bits_of(alone, x, outputs, 2);
  executable.emplace(compile(network->tape, outputs));
  network.reset();
  Player first(*executable), second(*executable);
  executable.reset();
  CHECK(bits_of(first, x, outputs, 2) == expected);
  CHECK(bits_of(second, x, outputs, 2) == expected);
  CHECK(first.executable().outputs().size() == outputs.size());
  CHECK(&first.plan() == &second.plan());
}

TEST_CASE("another player takes memory of its own only: nothing is planned again") {
  const auto made = [](int layers) {
    Tape tape;
    Var y = tape.input("x", {4, 4});
    const Var w = tape.parameter("w", Array(Dtype::float32, {4, 4}));
    for (int i = 0; i < layers; ++i) y = transpose(tanh(matmul(y, w) + 0.5));
    const Executable executable = compile(tape, {sum(y)});
    const AllocationCount count;
    const Player player(executable);
    return count.count();
  };
  const std::int64_t few = made(4), many = made(400);
  if (allocations_are_counted()) {
    CHECK(few > 0);
    CHECK(many == few);
  }
  CHECK(allocations_are_counted() == (few > 0));
}

TEST_CASE("outputs, carries, random steps and times are those of each player") {
  Tape tape;
  const Var h = tape.input("h", {2}), x = tape.input("x", {2});
  const Var next = h * 0.5 + x, drawn = uniform(tape, {8});
  PlayerOptions options;
  options.carries = {{h, next}};
  options.profile = true;
  const Executable executable = compile(tape, {next, drawn}, options);
  Player a(executable), b(executable);
  a.play({{x, {1, 1}}});
  a.play({{x, {1, 1}}});
  b.play({{x, {4, 8}}});
  CHECK(a.view(next)(0) == 1.5);
  CHECK(a.carried(h)(0) == 1.5F);
  CHECK(b.view(next)(1) == 8);
  CHECK(b.carried(h)(1) == 8);
  CHECK(a.step() == 2);
  CHECK(b.step() == 1);
  CHECK(a.measured() == 2);
  CHECK(b.measured() == 1);
  CHECK(a.view(drawn)(0) != b.view(drawn)(0));
  b.play({{x, {0, 0}}});
  CHECK(a.view(drawn)(0) == b.view(drawn)(0));  // both have drawn twice

  Array elsewhere(Dtype::float32, {8});
  const double before = b.view(drawn)(3);
  REQUIRE(a.move_outputs({drawn}, {elsewhere})[0]);
  a.play({{x, {1, 1}}}, 7);
  CHECK(a.view(drawn).data() == elsewhere.data());
  CHECK(b.view(drawn)(3) == before);
  CHECK(b.view(drawn).data() != elsewhere.data());
  b.play({{x, {1, 1}}}, 7);
  CHECK(b.view(drawn)(3) == elsewhere(3));
}

TEST_CASE("players share the states and the arena that the options give") {
  Tape tape;
  const Var h = tape.input("h", {2});
  const Var next = h + 1;
  PlayerOptions options;
  Array state(Dtype::float32, {2});
  options.carries = {{h, next, state}};
  options.arena = make_arena();
  const Executable executable = compile(tape, {}, options);
  Player a(executable), b(executable);
  a.play();
  b.play();
  a.play();
  CHECK(state(0) == 3);
  CHECK(b.carried(h).data() == state.data());
}

TEST_CASE("copies of a compiled function share its plans, and each has players of its own") {
  int recorded = 0;
  Compiled f([&](Var x) {
    ++recorded;
    return Vars{sum(tanh(x) * 2), uniform(x.tape(), {4})};
  });
  const std::vector<float> two{1, 2}, three{1, 2, 3};
  const double expected = f({two})[0]();
  const auto of_f = f({two});
  Compiled g = f;
  CHECK(g.step() == f.step());
  const auto of_g = g({three});
  CHECK(of_f[0]() == expected);  // a view of another player
  CHECK(of_g[0]() != expected);
  CHECK(g.plans() == 2);
  CHECK(f.plans() == 2);
  CHECK(recorded == 2);
  f({three});
  CHECK(recorded == 2);
  CHECK(f.step() == g.step());
  CHECK(Array(f({two})[1])(0) == Array(g({two})[1])(0));
  f({two});
  CHECK(Array(f({two})[1])(0) != Array(g({two})[1])(0));
  Compiled none([](Var x) { return x; });
  none = g;
  CHECK(none({two})[0]() == expected);
  CHECK(recorded == 2);

  std::vector<std::thread> running;
  std::array<double, 3> found{};
  const std::vector<float> four{1, 2, 3, 4};
  for (double& own : found)
    running.emplace_back([&, copy = f]() mutable { own = copy({four})[0]() - copy({two})[0](); });
  for (std::thread& thread : running) thread.join();
  CHECK(recorded == 3);
  for (const double own : found) CHECK(own == f({four})[0]() - expected);
  f.clear();
  CHECK(g.plans() == 0);
  CHECK(g({two})[0]() == expected);
  CHECK(recorded == 3);
}
