// Predictions of the time on more threads.
#include "xtape/team_profile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/threads/threads.hpp"
#include "inspect/cache_model.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/optim.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
/// A loss whose gradient has products, a softmax, sums and elementwise ops of many pieces.
struct Softmax {
  Softmax() {
    const Var x = tape.input("x", {256, 96}), w = tape.input("w", {96, 160});
    loss = sum(square(softmax(einsum("ij,jk->ik", x, w), -1)));
    const Vars gradients = grad(loss, {x, w});
    outputs = {loss, gradients[0], gradients[1]};
    inputs = {x, w};
    for (const Var& input : inputs) {
      Array array(Dtype::float32, input.shape());
      for (std::int64_t i = 0; i < array.count(); ++i)
        array.as<float>()[i] = 0.01F * static_cast<float>((i * 37) % 101 - 50);
      arrays.push_back(array);
    }
  }
  std::vector<Feed> feeds() const { return {{inputs[0], arrays[0]}, {inputs[1], arrays[1]}}; }
  Player player(int threads) const {
    PlayerOptions options;
    options.threads = threads;
    return {tape, outputs, options};
  }

  Tape tape;
  Var loss;
  Vars inputs, outputs;
  std::vector<Array> arrays;
};

TeamMachine machine_of(int threads) {
  return {.threads = threads, .meeting = 1e-6, .bandwidth = 1e11, .cache = std::size_t{1} << 20};
}

const TeamWork& work_of(const std::vector<TeamWork>& works, const std::string& op) {
  const auto found = std::ranges::find(works, op, &TeamWork::op);
  REQUIRE(found != works.end());
  return *found;
}

constexpr std::size_t block = CacheModel::block;
}  // namespace

TEST_CASE("plays on a simulated team have the bits of one thread") {
  const Softmax of;
  Player one = of.player(1);
  one.play(of.feeds());
  for (const int threads : {2, 7, 64, 200}) {
    CAPTURE(threads);
    Player many = of.player(threads);
    const TeamProfile team(machine_of(threads));
    many.play(of.feeds());
    for (const Var& output : of.outputs) {
      const ArrayView a = one.view(output), b = many.view(output);
      CHECK(std::memcmp(a.data(), b.data(), static_cast<std::size_t>(count_of(a.shape())) * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a profile of a team attributes the time to ops, updates and notes") {
  const Softmax of;
  constexpr int threads = 16;
  Player player = of.player(threads);
  Array weight(Dtype::float32, {300, 300});
  Store weights;
  weights.add("w", weight);
  Optimizer optimizer(weights, OptimizerOptions(), threads);
  const Array gradient(Dtype::float32, {300, 300});
  TeamProfile team(machine_of(threads));
  player.play(of.feeds());
  team.forget();
  for (int i = 0; i < 3; ++i) {
    player.play(of.feeds());
    optimizer.update({gradient}, 0.1);
    team.note("(other)");
  }
  const std::vector<TeamWork> works = team.works();
  std::int64_t calls = 0;
  for (const TeamWork& work : works) {
    CAPTURE(work.op);
    calls += work.op.starts_with('(') ? 0 : work.calls;
    CHECK(work.work > 0);
    CHECK(work.seconds == doctest::Approx(work.work / threads + work.serial * (threads - 1) / threads + work.few +
                                          work.uneven + work.meetings + work.memory));
    CHECK(work.pieces >= work.loops);
  }
  CHECK(calls == 3 * std::ssize(player.plan().steps));
  CHECK(work_of(works, "(optimizer)").calls == 3);
  CHECK(work_of(works, "(optimizer)").loops > 0);
  CHECK(work_of(works, "(other)").calls == 3);
  CHECK(work_of(works, "einsum").loops > 0);
}

TEST_CASE("plays within the pieces of a loop are a part of the loop") {
  const Softmax of;
  std::vector<Player> players;
  for (int i = 0; i < 4; ++i) players.push_back(of.player(1));
  TeamProfile team(machine_of(4));
  parallel_each(4, 4, [&](std::int64_t i) { players[static_cast<std::size_t>(i)].play(of.feeds()); });
  team.note("(batches)");
  const std::vector<TeamWork> works = team.works();
  REQUIRE(works.size() == 1);
  CHECK(works[0].op == "(batches)");
  CHECK(works[0].loops == 1);
  CHECK(works[0].pieces == 4);
  CHECK(works[0].serial < works[0].work / 2);
}

TEST_CASE("a step takes at least as long as its bytes from memory") {
  Tape tape;
  const Var x = tape.input("x", {1 << 20});
  PlayerOptions options;
  options.threads = 4;
  Player player(tape, {exp(x)}, options);
  const Array values(Dtype::float32, {1 << 20});
  // 4 MiB are read, and 4 MiB are read and written later; a slow memory delivers 1 MiB per second.
  TeamMachine slow{.threads = 4, .meeting = 0, .bandwidth = 1 << 20, .cache = 0};
  TeamProfile team(slow);
  player.play({{x, values}});
  const std::vector<TeamWork> without_cache = team.works();
  CHECK(work_of(without_cache, "exp").traffic == 12 << 20);
  CHECK(work_of(without_cache, "exp").seconds == 12);
  CHECK(work_of(without_cache, "exp").memory > 0);
  CHECK(std::string(work_of(without_cache, "exp").cause(4)) == "memory");

  slow.cache = std::size_t{1} << 30;
  TeamProfile cached(slow);
  player.play({{x, values}});
  cached.forget();
  player.play({{x, values}});
  CHECK(work_of(cached.works(), "exp").traffic == 0);
  CHECK(work_of(cached.works(), "exp").memory == 0);
}

TEST_CASE("the model of a cache holds what was used last") {
  const std::vector<char> bytes(9 * block);
  // Aligned here, because not every loader aligns a static array to more than a page.
  const char* const memory = bytes.data() + (block - reinterpret_cast<std::uintptr_t>(bytes.data()) % block);
  CacheModel cache(2 * block);
  CHECK(cache.touch(memory, block, false) == block);
  CHECK(cache.touch(memory, block, false) == 0);
  CHECK(cache.touch(memory + block, 100, false) == 100);         // a part of a block
  CHECK(cache.touch(memory + 2 * block, block, true) == block);  // takes the place of the first, which is unchanged
  CHECK(cache.touch(memory + block, 100, false) == 0);
  CHECK(cache.touch(memory, block, false) == 2 * block);      // the changed block leaves
  CHECK(cache.touch(memory, 8 * block, false) == 6 * block);  // the first two are there
  CHECK(cache.touch(memory, 0, true) == 0);
  CacheModel none(0);
  CHECK(none.touch(memory, block, true) == 2 * block);
  CHECK(none.touch(memory, block, false) == block);
}

TEST_CASE("a prediction compares one thread and a team") {
  const Softmax of;
  Player player = of.player(1);
  const auto profiled = [&] {
    auto profile = std::make_unique<TeamProfile>(TeamMachine());
    player.play(of.feeds());
    player.play(of.feeds());
    return profile;
  };
  const auto one = profiled();
  const auto team = profiled();
  const TeamPrediction found = prediction(*one, *team, 2);
  double sum = 0;
  for (const TeamWork& work : one->works()) sum += work.seconds;
  CHECK(found.one == doctest::Approx(sum / 2));
  CHECK(found.efficiency() == doctest::Approx(found.one / found.seconds));
  for (const TeamWork& work : found.works) CHECK(work.lost(1) == doctest::Approx(0));
  CHECK(prediction(*one, *team, 2, true).works.size() == 2);  // no module, and (rest)
  std::ostringstream text;
  text << found;
  CHECK(text.str().find(" ms on 1 threads, ") != std::string::npos);
}

TEST_CASE("what cannot be a team is an error") {
  CHECK_THROWS_WITH_AS(TeamProfile(TeamMachine{.threads = 0}),
                       "a team must have threads, and a meeting and a bandwidth of at least 0", Error);
  CHECK_THROWS_AS(TeamProfile(TeamMachine{.threads = 2, .meeting = -1}), Error);
  CHECK_THROWS_AS(TeamProfile(TeamMachine{.threads = 2, .bandwidth = std::nan("")}), Error);
  CHECK_THROWS_AS(team_machine(-1), Error);
}

TEST_CASE("this machine has a meeting and a bandwidth") {
  const TeamMachine two = team_machine(2);
  CHECK(two.threads == 2);
  CHECK(two.meeting > 0);
  CHECK(two.bandwidth > 0);
}
