// Products that are added or subtracted, which are one loop: the bits are those of two loops.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "played.hpp"
#include "player/run/body_kernels.hpp"
#include "same_bits.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
using Function = std::function<Vars(const Vars&)>;

/// Plays f(a, b, c, s, row) with these passes: a, b and c [n], s [], row [1].
std::vector<Array> played(const Function& f, Dtype dtype, std::int64_t n, const Passes& passes, int threads = 1) {
  Tape tape(Dtype::float64);
  Vars given;
  for (const std::int64_t size : {n, n, n, std::int64_t{3}, std::int64_t{1}})
    given.push_back(tape.input("x" + std::to_string(given.size()), {size}));
  Vars inputs;  // results of other kernels, so that the ops on them are the only loops
  for (const Var& x : given) inputs.push_back(cumsum(cast(4 * x, dtype), 0));
  inputs[3] = sum(inputs[3]);
  const Vars outputs = f(inputs);
  PlayerOptions options;
  options.passes = passes;
  options.threads = threads;
  Player player(tape, outputs, options);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < given.size(); ++i)
    feeds.emplace_back(given[i], numbers(given[i].shape(), static_cast<unsigned>(i) + 1));
  player.play(feeds);
  std::vector<Array> arrays;
  for (const Var& output : outputs) arrays.emplace_back(player.view(output));
  return arrays;
}
}  // namespace

TEST_CASE("joint loops: a product and a sum have the bits of two loops") {
  const std::vector<std::pair<std::string, Function>> functions = {
      {"a b + c", [](const Vars& x) { return Vars{x[0] * x[1] + x[2]}; }},
      {"c + a b", [](const Vars& x) { return Vars{x[2] + x[0] * x[1]}; }},
      {"a b - c", [](const Vars& x) { return Vars{x[0] * x[1] - x[2]}; }},
      {"c - a b", [](const Vars& x) { return Vars{x[2] - x[0] * x[1]}; }},
      {"a b + b c", [](const Vars& x) { return Vars{x[0] * x[1] + x[1] * x[2]}; }},
      {"a b - b c", [](const Vars& x) { return Vars{x[0] * x[1] - x[1] * x[2]}; }},
      {"s b + c", [](const Vars& x) { return Vars{x[3] * x[1] + x[2]}; }},
      {"b s - c", [](const Vars& x) { return Vars{x[1] * x[3] - x[2]}; }},
      {"c - b row", [](const Vars& x) { return Vars{x[2] - x[1] * x[4]}; }},
      {"a b + s", [](const Vars& x) { return Vars{x[0] * x[1] + x[3]}; }},
      {"s row + c", [](const Vars& x) { return Vars{x[3] * x[4] + x[2]}; }},
      {"s b + c, read elsewhere", [](const Vars& x) { return Vars{(x[3] * x[1] + x[2]) * (x[0] - x[3])}; }},
      {"a b, a b + c",
       [](const Vars& x) {
         const Var y = x[0] * x[1];
         return Vars{y, y + x[2]};
       }},
      {"a b + a b",
       [](const Vars& x) {
         const Var y = x[0] * x[1];
         return Vars{exp(-square(y + y))};
       }},
      {"a chain", [](const Vars& x) {
         Var y = x[2];
         for (int i = 0; i < 5; ++i) y = (i % 2 == 0 ? y - x[3] * y : x[0] * y + tanh(y)) * x[4] - y * x[1];
         return Vars{y};
       }}};
  for (const auto& each : functions)
    for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::bfloat16})
      for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 16, 17, 700, 40000}) {
        const Function& f = each.second;
        CAPTURE(each.first);
        CAPTURE(name_of(dtype));
        CAPTURE(n);
        const std::vector<Array> truth = played(f, dtype, n, Passes::unfused());
        for (const int threads : {1, 2}) {
          const std::vector<Array> found = played(f, dtype, n, Passes(), threads);
          for (std::size_t i = 0; i < truth.size(); ++i) CHECK(same_bits(found[i], truth[i]));
        }
      }
}

TEST_CASE("joint loops: integers have no joint loop, and wrap") {
  const Function f = [](const Vars& x) { return Vars{x[0] * 2000000000 + x[2] * x[1], x[3] - x[0] * x[1]}; };
  for (const std::int64_t n : {1, 5, 700}) {
    const std::vector<Array> truth = played(f, Dtype::int32, n, Passes::unfused());
    const std::vector<Array> found = played(f, Dtype::int32, n, Passes());
    for (std::size_t i = 0; i < truth.size(); ++i) CHECK(same_bits(found[i], truth[i]));
  }
}

TEST_CASE("joint loops: a result that overwrites a factor is written after the product") {
  const Function f = [](const Vars& x) {
    const Var product = x[0] * x[1], first = x[0] - x[2];  // the first result may take the memory of x[0]
    const Var second = product + first;
    return Vars{cumsum(first, 0), cumsum(second, 0)};
  };
  for (const std::int64_t n : {3, 5, 700, 40000}) {
    const std::vector<Array> truth = played(f, Dtype::float64, n, Passes::unfused());
    const std::vector<Array> found = played(f, Dtype::float64, n, Passes());
    for (std::size_t i = 0; i < truth.size(); ++i) CHECK(same_bits(found[i], truth[i]));
  }
}

TEST_CASE("joint loops: a product joins the only sum that reads it") {
  Tape tape;
  const Var a = tape.input("a", {5}), b = tape.input("b", {5}), product = a * b, twice = a * a;
  const Var joined = product - b, apart = twice + twice;
  tape.set_results({joined.id(), apart.id()});
  const std::vector<BodyLoop> loops = body_loops(tape);
  REQUIRE(loops.size() == 3);
  CHECK(loops[0].node == twice.id().node);
  CHECK(loops[1].node == joined.id().node);
  CHECK(loops[1].joined == product.id().node);
  CHECK(loops[1].operand == 0);
  CHECK(loops[1].inputs == std::vector<ValueId>{a.id(), b.id(), b.id()});
  CHECK(loops[2].node == apart.id().node);
  CHECK(loops[2].joined == -1);
}
