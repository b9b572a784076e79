// The nodes and the plan of a scan, the values it keeps, and its random numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "needs.hpp"
#include "recurrences.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
std::size_t nodes_and_steps(std::int64_t length) {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points(3, length))
    v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Vars outputs = with_gradients(simple, scanned, v, {});
  return tape.size() * 1000 + Player(tape, outputs).plan().steps.size();
}
}  // namespace

TEST_CASE("scan: the gradient of a weight is one product over all steps") {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points()) v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Var loss = sum(square(simple(scanned, v, {})[0]));
  const std::size_t size = tape.size();
  const Vars gradients = grad(loss, {v[0], v[2], v[3]});
  for (const Var& gradient : gradients) CHECK(gradient.node().op->name == "einsum");
  int scans = 0;
  for (std::size_t i = size; i < tape.size(); ++i) {
    if (tape.node(i).op->name != "scan") continue;
    ++scans;
    int products = 0;  // in the plan of the step: the product for the state's cotangent
    PlayerOptions options;
    const Tape& body = *tape.node(i).body;
    Player player(body, {body.var(body.results().back())}, options);
    for (const Plan::Step& step : player.plan().steps) products += step.op.rfind("einsum", 0) == 0;
    CHECK(products == 1);
  }
  CHECK(scans == 1);
}

TEST_CASE("scan: projections and look-ups of inputs are computed before the scan, for all steps at once") {
  const auto rows = [](const Vars& v, const Var& tokens, Steps steps) {
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      const Var next = tanh(take(v[0], x[0]) + h[0] * einsum("i,bij->bj", v[1], x[1]));
      return std::make_pair(Vars{next}, Vars{next});
    };
    return steps(cell, {tokens, v[2]}, {v[3]}, {});
  };
  const auto recording = [&](Steps steps) -> Recording {
    return [=](const Vars& v) {
      const Var tokens = cast(v[4], Dtype::int64);
      Vars results = rows(v, tokens, steps).outputs;
      for (const Var& gradient : grad(sum(square(results[0])), {v[0], v[1], v[2], v[3]})) results.push_back(gradient);
      return results;
    };
  };
  std::vector<Doubles> points = {numbers({5, 3}, 1), numbers({4}, 2), numbers({2, 6, 4, 3}, 3), numbers({2, 3}, 4)};
  points.push_back(made_from({2, 6}, [](const Shape& at) { return static_cast<double>((at[0] * 3 + at[1]) % 5); }));
  const std::vector<Doubles> truth = played(recording(by_hand), points), found = played(recording(scanned), points);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(found[i], truth[i], 1e-12));

  Tape tape;
  Vars v;
  for (const Doubles& point : points) v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Var scan = rows(v, cast(v[4], Dtype::int64), scanned).outputs[0];
  REQUIRE(scan.node().op->name == "scan");
  const Tape body = *scan.node().body;
  bool sums = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    CHECK(body.node(i).op->name != "einsum");
    CHECK(body.node(i).op->name != "take");
    sums = sums || body.node(i).op->name == "add";
  }
  CHECK(sums);  // what is left in the step
}

TEST_CASE("scan: neither the tape nor the plan grows with the length") {
  CHECK(nodes_and_steps(3) == nodes_and_steps(700));
}

TEST_CASE("scan: only what the backward pass reads is kept") {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points(8, 64))
    v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Vars results = simple(scanned, v, {});
  const std::size_t stacked = 8 * 64 * 4 * sizeof(float);  // one value of every step: the input's projection
  CHECK(Player(tape, {results[1]}).plan().arena_bytes < 2 * stacked);
}

TEST_CASE("scan: a copy of what stays the same from step to step is made once") {
  const auto look_up = [](bool transposed, double& bytes) {
    Tape tape;
    const Var table = tape.input("table", transposed ? Shape{5, 7} : Shape{7, 5}, Dtype::float64);
    const Var xs = tape.input("xs", {6}, Dtype::float64);
    const Var rows = transposed ? transpose(table, {1, 0}) : table;  // [7, 5]
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      const Var row = take(rows, cast(h[0], Dtype::int64));  // [5]; `take` reads dense tables only
      return std::make_pair(Vars{row * x[0]}, Vars{h[0] + 1});
    };
    ScanOptions options;
    options.axis = 0;
    const Var found = scan(cell, {xs}, {tape.constant(0.0, Dtype::float64)}, options).outputs[0];  // [6, 5]
    Player player(tape, {found});
    bytes = 0;
    for (const Plan::Step& step : player.plan().steps) bytes += step.bytes;
    const Doubles elements = numbers({7, 5}, 1);
    Doubles fed = elements;
    if (transposed) fed = made_from({5, 7}, [&](const Shape& at) { return elements(at[1], at[0]); });
    const Doubles factors = numbers({6}, 2);
    player.play({{table, fed}, {xs, factors}});
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 5; ++j) CHECK(player.tensor<double>(found)(i, j) == elements(i, j) * factors(i));
  };
  double dense = 0, transposed = 0;
  look_up(false, dense);
  look_up(true, transposed);
  CHECK(transposed - dense == 2 * 7 * 5 * 8);  // read and written once, not at each of six steps
}

TEST_CASE("scan: playing allocates nothing" * needs_no_sanitizer()) {
  Tape tape;
  Vars v;
  std::vector<Array> values;
  for (const Doubles& point : long_short_points(9)) {
    values.emplace_back(Dtype::float32, shape_of(point));
    v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  }
  const Vars outputs = with_gradients(long_short, scanned, v, padded(v[0]));
  Player player(tape, outputs);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < v.size(); ++i) feeds.emplace_back(v[i], values[i]);
  player.play(feeds);
  const AllocationCount count;
  player.play(feeds);
  CHECK(count.count() == 0);
}

TEST_CASE("scan: dropout draws new numbers at every step, the same ones unrolled and in the gradient") {
  Tape tape;
  const Var x = tape.input("x", {4, 6, 50});
  const Var first = tape.input("first", {4, 50});
  const ScanFunction cell = [](const Vars& in, const Vars& h) {
    const Var kept = checkpoint([](const Vars& u) { return Vars{dropout(u[0], 0.5)}; }, {in[0] + h[0] * 0})[0];
    return std::make_pair(Vars{kept}, Vars{h[0] + uniform(in[0].tape(), in[0].shape())});
  };
  const Scanned result = scan(cell, {x}, {first});
  const Vars outputs{result.outputs[0], result.states[0], grad(sum(result.outputs[0]), {x})[0]};
  Array ones(Dtype::float32, {4, 6, 50}), start(Dtype::float32, {4, 50});
  std::fill(ones.as<float>(), ones.as<float>() + ones.count(), 1.0F);
  std::vector<std::vector<Array>> found;
  for (const Passes& passes : {Passes(), Passes::reference()}) {
    PlayerOptions options;
    options.passes = passes;
    options.seed = 3;
    Player player(tape, outputs, options);
    player.play({{x, ones}, {first, start}}, 7);
    found.emplace_back();
    for (const Var& output : outputs) found.back().emplace_back(player.view(output));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    CHECK(std::memcmp(found[0][i].data(), found[1][i].data(), found[0][i].bytes()) == 0);
  CHECK(std::memcmp(found[0][0].data(), found[0][2].data(), found[0][0].bytes()) == 0);  // the mask is the same in both
  const float* kept = found[0][0].as<float>();
  CHECK(std::memcmp(kept, kept + 50, 50 * sizeof(float)) != 0);  // two steps of one row differ
}
