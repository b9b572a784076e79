// Scans against themselves unrolled, against finite differences, and what they must not cost.
#include "xtape/scan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
using Steps = Scanned (*)(const Cell&, const Vars&, const Vars&, const ScanOptions&);

Scanned scanned(const Cell& cell, const Vars& inputs, const Vars& init, const ScanOptions& options) {
  return scan(cell, inputs, init, options);
}

Var at_step(const Var& x, std::int64_t axis, std::int64_t step) {
  std::vector<std::int64_t> start(static_cast<std::size_t>(axis), 0), stop(static_cast<std::size_t>(axis), end);
  start.push_back(step);
  stop.push_back(step + 1);
  return squeeze(slice(x, start, stop), {axis});
}

/// What a scan means, written with nothing but the cell called at every step.
Scanned by_hand(const Cell& cell, const Vars& inputs, const Vars& init, const ScanOptions& options) {
  const std::int64_t length = inputs[0].size(options.axis);
  Vars states = init;
  std::vector<Vars> columns;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t place = options.reverse ? length - 1 - i : i;
    Vars slices;
    for (const Var& x : inputs) slices.push_back(at_step(x, options.axis, place));
    auto [outputs, next] = cell(slices, states);
    if (options.real) {
      const auto mask = [&](const Var& x) {
        Shape shape = at_step(options.real, options.axis, place).shape();
        while (shape.size() < x.rank()) shape.push_back(1);
        return cast(reshape(at_step(options.real, options.axis, place), shape), x.dtype());
      };
      for (Var& output : outputs) output = output * mask(output);
      for (std::size_t j = 0; j < next.size(); ++j) next[j] = next[j] * mask(next[j]) + states[j] * (1 - mask(next[j]));
    }
    columns.resize(outputs.size(), Vars(static_cast<std::size_t>(length)));
    for (std::size_t k = 0; k < outputs.size(); ++k) columns[k][static_cast<std::size_t>(place)] = outputs[k];
    states = next;
  }
  Scanned result;
  for (const Vars& column : columns) result.outputs.push_back(stack(column, options.axis));
  result.states = states;
  return result;
}

/// x [b, t, n], h [b, m], w [n, m], u [m, m], bias [m].
Vars simple(Steps steps, const Vars& v, const ScanOptions& options) {
  const Cell cell = [&](const Vars& x, const Vars& h) {
    const Var next = tanh(matmul(x[0], v[2]) + matmul(h[0], v[3]) + v[4]);
    return std::make_pair(Vars{next}, Vars{next});
  };
  const Scanned result = steps(cell, {v[0]}, {v[1]}, options);
  return {result.outputs[0], result.states[0]};
}

std::vector<Doubles> simple_points(std::int64_t batch = 3, std::int64_t length = 5) {
  return {numbers({batch, length, 2}, 1), numbers({batch, 4}, 2), numbers({2, 4}, 3), numbers({4, 4}, 4),
          numbers({4}, 5)};
}

/// x [b, t, n], y [b, t, m]; h, c [b, m]; w [n, 4m], u [m, 4m], bias [4m]: two inputs, two states, two outputs.
Vars long_short(Steps steps, const Vars& v, const ScanOptions& options) {
  const Cell cell = [&](const Vars& x, const Vars& state) {
    const Vars gates = split(einsum("bn,ng->bg", x[0], v[4]) + einsum("bm,mg->bg", state[0], v[5]) + v[6], 4, 1);
    const Var c = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]) * x[1];
    const Var h = sigmoid(gates[3]) * tanh(c);
    return std::make_pair(Vars{h * x[1], sum(c, {-1})}, Vars{h, c});
  };
  const Scanned result = steps(cell, {v[0], v[1]}, {v[2], v[3]}, options);
  return {result.outputs[0], result.outputs[1], result.states[0], result.states[1]};
}

std::vector<Doubles> long_short_points(std::int64_t length = 6) {
  return {numbers({2, length, 3}, 1), numbers({2, length, 4}, 2), numbers({2, 4}, 3), numbers({2, 4}, 4),
          numbers({3, 16}, 5),        numbers({4, 16}, 6),        numbers({16}, 7)};
}

using Model = Vars (*)(Steps, const Vars&, const ScanOptions&);

/// The model's outputs, and the gradients of a weighted sum of them.
Vars with_gradients(Model model, Steps steps, const Vars& v, const ScanOptions& options) {
  Vars results = model(steps, v, options);
  Var loss = sum(sin(results[0]));
  for (std::size_t i = 1; i < results.size(); ++i)
    loss = loss + sum(square(results[i])) * (0.5 + static_cast<double>(i));
  for (const Var& gradient : grad(loss, v)) results.push_back(gradient);
  return results;
}

void check_as_by_hand(Model model, const std::vector<Doubles>& points,
                      const std::function<ScanOptions(const Var&)>& options) {
  const auto recording = [&](Steps steps) -> Recording {
    return [=](const Vars& v) { return with_gradients(model, steps, v, options(v[0])); };
  };
  PlayerOptions reference;
  reference.passes = Passes::reference();
  const std::vector<Doubles> truth = played_with(recording(by_hand), points, Dtype::float64, reference);
  const std::vector<Doubles> found = played(recording(scanned), points, 1e-12, 2e-5);
  REQUIRE(found.size() == truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    CAPTURE(i);
    CHECK(near(found[i], truth[i], 1e-12));
  }
  for (bool Passes::*pass : {&Passes::fuse, &Passes::fold, &Passes::common, &Passes::accumulate, &Passes::chains,
                             &Passes::views, &Passes::in_place, &Passes::reuse}) {
    PlayerOptions without;
    without.passes.*pass = false;
    const std::vector<Doubles> same = played_with(recording(scanned), points, Dtype::float64, without);
    for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(same[i], truth[i], 1e-12));
  }
}

ScanOptions plain(const Var&) {
  return {};
}
ScanOptions backwards(const Var&) {
  ScanOptions options;
  options.reverse = true;
  return options;
}
/// Row i has length - i steps.
ScanOptions padded(const Var& x) {
  ScanOptions options;
  const Shape shape{x.size(0), x.size(1)};
  options.real = iota(x.tape(), shape, 1) < static_cast<int>(x.size(1)) - iota(x.tape(), shape, 0);
  return options;
}
ScanOptions padded_backwards(const Var& x) {
  ScanOptions options = padded(x);
  options.reverse = true;
  return options;
}

std::size_t nodes_and_steps(std::int64_t length) {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points(3, length))
    v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Vars outputs = with_gradients(simple, scanned, v, {});
  return tape.size() * 1000 + Player(tape, outputs).plan().steps.size();
}
}  // namespace

TEST_CASE("scan: a simple recurrence and its gradients are what the steps by hand give") {
  for (const auto& options : {plain, backwards, padded, padded_backwards})
    check_as_by_hand(simple, simple_points(), options);
}

TEST_CASE("scan: several inputs, states and outputs") {
  for (const auto& options : {plain, backwards, padded, padded_backwards})
    check_as_by_hand(long_short, long_short_points(), options);
}

TEST_CASE("scan: along the first axis") {
  const auto first = [](const Vars& v) {
    ScanOptions options;
    options.axis = 0;
    Vars moved = v;
    moved[0] = transpose(v[0], {1, 0, 2});
    const Vars results = simple(scanned, moved, options);
    return Vars{transpose(results[0], {1, 0, 2}), results[1]};
  };
  const auto second = [](const Vars& v) { return simple(scanned, v, {}); };
  const std::vector<Doubles> a = played(first, simple_points()), b = played(second, simple_points());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(near(a[i], b[i], 1e-12));
}

TEST_CASE("scan: in reverse is forward over what is flipped") {
  const auto reverse = [](const Vars& v) { return simple(scanned, v, backwards(v[0])); };
  const auto flipped = [](const Vars& v) {
    Vars turned = v;
    turned[0] = flip(v[0], {1});
    const Vars results = simple(scanned, turned, {});
    return Vars{flip(results[0], {1}), results[1]};
  };
  const std::vector<Doubles> a = played(reverse, simple_points()), b = played(flipped, simple_points());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(near(a[i], b[i], 1e-12));
}

TEST_CASE("scan: where nothing is real the state stays and the output is zero") {
  const std::vector<Doubles> results =
      played([](const Vars& v) { return simple(scanned, v, padded(v[0])); }, simple_points(3, 5));
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(element(results[1], {row, i}) == element(results[0], {row, 4 - row, i}));
      for (std::int64_t step = 5 - row; step < 5; ++step) CHECK(element(results[0], {row, step, i}) == 0);
    }
}

TEST_CASE("scan: gradients through twenty steps, and of the gradient, against finite differences") {
  const auto recording = [](const Vars& v) { return simple(scanned, v, {}); };
  const GradcheckReport first = gradcheck(recording, simple_points(2, 20));
  CHECK_MESSAGE(first.passed, first.message);
  GradcheckOptions twice;
  twice.second = true;
  const GradcheckReport second = gradcheck(recording, simple_points(2, 4), twice);
  CHECK_MESSAGE(second.passed, second.message);
  const auto masked = [](const Vars& v) { return long_short(scanned, v, padded_backwards(v[0])); };
  const GradcheckReport third = gradcheck(masked, long_short_points(3), twice);
  CHECK_MESSAGE(third.passed, third.message);
}

TEST_CASE("scan: the gradient of a weight is one product over all steps") {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points()) v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Var loss = sum(square(simple(scanned, v, {})[0]));
  const std::size_t size = tape.size();
  const Vars gradients = grad(loss, {v[0], v[2], v[3]});
  for (const Var& gradient : gradients) CHECK(gradient.node().op->name == "einsum");
  for (std::size_t i = size; i < tape.size(); ++i) {
    if (tape.node(i).op->name != "scan") continue;
    int products = 0;  // in the plan of the step: what brings the state's cotangent back
    PlayerOptions options;
    const Tape& body = *tape.node(i).body;
    Player player(body, {body.var(body.results().back())}, options);
    for (const Plan::Step& step : player.plan().steps) products += step.op.rfind("einsum", 0) == 0;
    CHECK(products == 1);
  }
}

TEST_CASE("scan: what cannot be summed behind the scan is summed step by step") {
  const Recording recording = [](const Vars& v) {
    const Cell cell = [&](const Vars& x, const Vars& h) {
      const Var next = h[0] * v[2] + x[0] * sin(v[3]);
      return std::make_pair(Vars{exp(next * 0.1)}, Vars{next});
    };
    const Scanned result = scan(cell, {v[0]}, {v[1]});
    return Vars{result.outputs[0], result.states[0]};
  };
  check_gradients(recording, {numbers({2, 3, 4}, 1), numbers({2, 4}, 2), numbers({2, 4}, 3), numbers({2, 4}, 4)});
}

TEST_CASE("scan: what comes in is projected and looked up before the scan, for all steps at once") {
  const auto rows = [](const Vars& v, const Var& tokens, Steps steps) {
    const Cell cell = [&](const Vars& x, const Vars& h) {
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
  const Tape body = *rows(v, cast(v[4], Dtype::int64), scanned).outputs[0].node().body;
  for (std::size_t i = 0; i < body.size(); ++i) {
    CHECK(body.node(i).op->name != "einsum");
    CHECK(body.node(i).op->name != "take");
  }
}

TEST_CASE("scan: outputs that are an input, a state, or something from outside") {
  const Recording recording = [](const Vars& v) {
    const Cell cell = [&](const Vars& x, const Vars& h) {
      return std::make_pair(Vars{x[0], h[0], v[2], exp(v[2]), x[0]}, Vars{x[0]});
    };
    Vars results = scan(cell, {v[0]}, {v[1]}).outputs;
    Var loss = sum(results[0] * results[1]);
    for (std::size_t i = 2; i < 5; ++i) loss = loss + sum(results[i] * results[i]);
    for (const Var& gradient : grad(loss, v)) results.push_back(gradient);
    return results;
  };
  const std::vector<Doubles> points = {numbers({2, 3}, 1), numbers({2}, 2), numbers({2}, 3)};
  const std::vector<Doubles> results = played(recording, points);
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t step = 0; step < 3; ++step) {
      const double here = element(points[0], {row, step});
      const double before = step > 0 ? element(points[0], {row, step - 1}) : element(points[1], {row});
      CHECK(element(results[0], {row, step}) == here);
      CHECK(element(results[1], {row, step}) == before);
      CHECK(element(results[2], {row, step}) == element(points[2], {row}));
      CHECK(element(results[4], {row, step}) == here);
      const double after = step < 2 ? element(points[0], {row, step + 1}) : 0;
      CHECK(element(results[5], {row, step}) == doctest::Approx(before + after + 2 * here));
    }
  const double outside = element(points[2], {1});
  CHECK(element(results[7], {1}) == doctest::Approx(3 * (2 * outside + 2 * std::exp(2 * outside))));
}

TEST_CASE("scan: states of several types, a state that stays, states that change places") {
  const Recording recording = [](const Vars& v) {
    const Cell cell = [&](const Vars& x, const Vars& s) {
      return std::make_pair(Vars{cast(s[0], x[0].dtype()) * x[0] + s[1], s[2]}, Vars{s[0] + 1, s[2], s[1], s[3]});
    };
    const Var count = zeros(v[0].tape(), {2}, Dtype::int64);
    const Scanned result = scan(cell, {v[0]}, {count, v[1], v[2], v[1]});
    return Vars{result.outputs[0], result.outputs[1], result.states[0],
                result.states[1],  result.states[2],  result.states[3]};
  };
  const std::vector<Doubles> points = {numbers({2, 3}, 1), numbers({2}, 2), numbers({2}, 3)};
  const std::vector<Doubles> results = played(recording, points);
  CHECK(element(results[2], {1}) == 3);
  for (std::int64_t row = 0; row < 2; ++row) {
    CHECK(element(results[0], {row, 2}) ==
          doctest::Approx(2 * element(points[0], {row, 2}) + element(points[1], {row})));
    CHECK(element(results[1], {row, 1}) == element(points[1], {row}));
    CHECK(element(results[3], {row}) == element(points[2], {row}));
    CHECK(element(results[5], {row}) == element(points[1], {row}));
  }
}

TEST_CASE("scan: no step, and no row") {
  const Recording recording = [](const Vars& v) { return with_gradients(long_short, scanned, v, {}); };
  const std::vector<Doubles> points = long_short_points(0);
  const std::vector<Doubles> results = played(recording, points);
  CHECK(shape_of(results[0]) == Shape{2, 0, 4});
  CHECK(near(results[2], points[2], 0));
  CHECK(near(results[3], points[3], 0));
  for (const double value : results[4 + 4]) CHECK(value == 0);  // of a weight that no step used
  const Recording rowless = [](const Vars& v) { return with_gradients(simple, scanned, v, padded(v[0])); };
  const std::vector<Doubles> none = played(rowless, simple_points(0, 5));
  CHECK(shape_of(none[0]) == Shape{0, 5, 4});
  for (const double value : none[2 + 3]) CHECK(value == 0);
}

TEST_CASE("scan: neither the tape nor the plan grows with the length") {
  CHECK(nodes_and_steps(3) == nodes_and_steps(700));
}

TEST_CASE("scan: only what the backward part reads is kept") {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points(8, 64))
    v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Vars results = simple(scanned, v, {});
  const std::size_t stacked = 8 * 64 * 4 * sizeof(float);  // one value of a step, of all steps: the input's projection
  CHECK(Player(tape, {results[1]}).plan().arena_bytes < 2 * stacked);
}

TEST_CASE("scan: playing allocates nothing") {
  if (!allocations_are_counted()) return;
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

TEST_CASE("scan: dropout draws anew at every step, the same unrolled, and the same for the gradient") {
  Tape tape;
  const Var x = tape.input("x", {4, 6, 50});
  const Var first = tape.input("first", {4, 50});
  const Cell cell = [](const Vars& in, const Vars& h) {
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
  CHECK(std::memcmp(found[0][0].data(), found[0][2].data(), found[0][0].bytes()) == 0);  // the mask itself, both times
  const float* kept = found[0][0].as<float>();
  CHECK(std::memcmp(kept, kept + 50, 50 * sizeof(float)) != 0);  // two steps of one row
}

TEST_CASE("scan: inside a checkpoint, and a scan inside a scan") {
  const Recording nested = [](const Vars& v) {
    const Cell inner = [&](const Vars& x, const Vars& h) {
      const Var next = tanh(h[0] * v[1] + x[0]);
      return std::make_pair(Vars{next}, Vars{next});
    };
    const Cell outer = [&](const Vars& x, const Vars& h) {
      const Scanned result = scan(inner, {x[0]}, {h[0]});
      return std::make_pair(Vars{result.outputs[0]}, result.states);
    };
    const auto block = [&](const Vars& in) {
      const Scanned result = scan(outer, {in[0]}, {zeros(in[0].tape(), {2}, in[0].dtype())});
      return Vars{result.outputs[0], result.states[0]};
    };
    return checkpoint(block, {v[0]});
  };
  const std::vector<Doubles> points = {numbers({2, 3, 4}, 1), numbers({2}, 2)};
  const std::vector<Doubles> results = played(nested, points);
  double h = 0;
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t k = 0; k < 4; ++k) {
      h = std::tanh(h * element(points[1], {1}) + element(points[0], {1, i, k}));
      CHECK(element(results[0], {1, i, k}) == doctest::Approx(h));
    }
  check_gradients(nested, points);
}

TEST_CASE("scan: a failed call says what is wrong and leaves the tape as it was") {
  Tape tape;
  const Var x = tape.input("x", {2, 5, 3}), y = tape.input("y", {2, 4, 3}), h = tape.input("h", {2, 3});
  const std::size_t size = tape.size();
  const Cell good = [](const Vars& in, const Vars& s) { return std::make_pair(Vars{in[0]}, Vars{s[0] + in[0]}); };
  const Cell wider = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{in[0]}, Vars{concat({s[0], in[0]}, 1)});
  };
  const Cell fewer = [](const Vars& in, const Vars&) { return std::make_pair(Vars{in[0]}, Vars{}); };
  const Cell drawing = [](const Vars& in, const Vars& s) { return std::make_pair(Vars{categorical(in[0])}, s); };
  ScanOptions unfit;
  unfit.real = tape.input("real", {3, 5}, Dtype::boolean);
  const std::size_t with_real = tape.size();
  CHECK_THROWS_WITH_AS(
      scan(good, {x, y}, {h}),
      "scan: the inputs must be equally long along axis 1, got float32 (2, 5, 3) and float32 (2, 4, 3)", ShapeError);
  CHECK_THROWS_WITH_AS(scan(wider, {x}, {h}),
                       "scan: next state 0 must be float32 (2, 3) as the state is, the cell gave float32 (2, 6)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(scan(fewer, {x}, {h}),
                       "scan: the cell must give one next state for each of the 1 states, it gave 0", Error);
  CHECK_THROWS_WITH_AS(scan(drawing, {x}, {h}),
                       "scan: categorical cannot be drawn for all steps at once: draw uniform numbers in its place",
                       Error);
  CHECK_THROWS_AS(scan(good, {x}, {h}, unfit), ShapeError);
  CHECK_THROWS_AS(scan(good, {}, {h}), Error);
  CHECK(tape.size() == with_real);
  CHECK(with_real == size + 1);
}

TEST_CASE("scan: in mode predict a cell holds no cache, and the states have the rows of the tokens") {
  Tape tape(Mode::predict);
  const Var tokens = tape.input("tokens", {2, 3, 4}), past = tape.input("past", {2}, Dtype::int64);
  tape.set_past(tokens, past, 8);
  const Var h = tape.input("h", {2, 4}), one = tape.input("one", {1, 4});
  const std::size_t size = tape.size();
  const Cell caching = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{cache(expand_dims(in[0], 1))}, s);
  };
  const Cell good = [](const Vars& in, const Vars& s) { return std::make_pair(Vars{in[0]}, Vars{s[0]}); };
  CHECK_THROWS_WITH_AS(scan(caching, {tokens}, {h}),
                       "scan: a cell cannot hold a cache: what it carries must be its states", Error);
  CHECK_THROWS_AS(scan(good, {tokens}, {one}), ShapeError);
  CHECK(tape.size() == size);
  CHECK(tape.states().empty());
  scan(good, {tokens}, {h});
  CHECK(tape.states().size() == 1);
}
