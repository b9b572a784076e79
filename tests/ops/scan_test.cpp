// Scans and their gradients, compared with explicit steps and with finite differences.
#include "xtape/scan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "recurrences.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
void check_as_by_hand(Recurrence model, const std::vector<Doubles>& points,
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
  for (bool Passes::*pass : {&Passes::fuse, &Passes::fold, &Passes::common, &Passes::accumulate, &Passes::elementwise,
                             &Passes::views, &Passes::in_place, &Passes::reuse}) {
    PlayerOptions without;
    without.passes.*pass = false;
    const std::vector<Doubles> same = played_with(recording(scanned), points, Dtype::float64, without);
    for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(same[i], truth[i], 1e-12));
  }
}
}  // namespace

TEST_CASE("scan: a simple recurrence and its gradients agree with explicit steps") {
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

TEST_CASE("scan: in reverse it is a forward scan of flipped inputs") {
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

TEST_CASE("scan: masked steps keep the state and give an output of zero") {
  const std::vector<Doubles> results =
      played([](const Vars& v) { return simple(scanned, v, padded(v[0])); }, simple_points(3, 5));
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(element(results[1], {row, i}) == element(results[0], {row, 4 - row, i}));
      for (std::int64_t step = 5 - row; step < 5; ++step) CHECK(element(results[0], {row, step, i}) == 0);
    }
}

TEST_CASE("scan: gradients through twenty steps, and second derivatives, agree with finite differences") {
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

TEST_CASE("scan: gradients that cannot be summed after the scan are summed step by step") {
  const Recording recording = [](const Vars& v) {
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      const Var next = h[0] * v[2] + x[0] * sin(v[3]);
      return std::make_pair(Vars{exp(next * 0.1)}, Vars{next});
    };
    const Scanned result = scan(cell, {v[0]}, {v[1]});
    return Vars{result.outputs[0], result.states[0]};
  };
  check_gradients(recording, {numbers({2, 3, 4}, 1), numbers({2, 4}, 2), numbers({2, 4}, 3), numbers({2, 4}, 4)});
}

TEST_CASE("scan: a cell that attends to an outside array") {
  // x [b, t, n], h [b, n], memory [b, s, n], w [2n, n], u [n, n], gain [n]
  const Recurrence attending = [](Steps steps, const Vars& v, const ScanOptions& options) {
    const Var hidden = iota(v[0].tape(), {2, 5}, 1) > iota(v[0].tape(), {2, 5}, 0) + 2;
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      const Var scores = einsum("bn,bsn->bs", matmul(h[0], v[4]), v[2]);
      const Var weights = softmax(masked_fill(scores, hidden, -1e9));
      const Var read = concat({einsum("bs,bsn->bn", weights, v[2]), x[0]}, 1);
      const Var gate = sigmoid(x[0] * v[5]);
      const Var next = gate * h[0] + (1 - gate) * tanh(layer_norm(matmul(read, v[3]), v[5], 1e-3));
      return std::make_pair(Vars{next, weights}, Vars{next});
    };
    const Scanned result = steps(cell, {v[0]}, {v[1]}, options);
    return Vars{result.outputs[0], result.outputs[1], result.states[0]};
  };
  const std::vector<Doubles> points = {numbers({2, 4, 3}, 1), numbers({2, 3}, 2), numbers({2, 5, 3}, 3),
                                       numbers({6, 3}, 4),    numbers({3, 3}, 5), numbers({3}, 6)};
  for (const auto& options : {plain, padded_backwards}) check_as_by_hand(attending, points, options);
}

TEST_CASE("scan: outputs that are an input, a state, or an outside var") {
  const Recording recording = [](const Vars& v) {
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      return std::make_pair(Vars{x[0], h[0], v[2], exp(v[2]), x[0]}, Vars{x[0]});
    };
    Vars results = scan(cell, {v[0]}, {v[1]}).outputs;
    Var loss = sum(results[0] * results[1]);
    for (std::size_t i = 2; i < 5; ++i) loss = loss + sum(results[i] * results[i]);
    for (const Var& gradient : grad(loss, v, {.materialize_grads = true})) results.push_back(gradient);
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

TEST_CASE("scan: states of several types, a constant state, states that are swapped") {
  const Recording recording = [](const Vars& v) {
    const ScanFunction cell = [&](const Vars& x, const Vars& s) {
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

TEST_CASE("scan: without steps, and without rows") {
  const Recording recording = [](const Vars& v) { return with_gradients(long_short, scanned, v, {}); };
  const std::vector<Doubles> points = long_short_points(0);
  const std::vector<Doubles> results = played(recording, points);
  CHECK(shape_of(results[0]) == Shape{2, 0, 4});
  CHECK(near(results[2], points[2], 0));
  CHECK(near(results[3], points[3], 0));
  for (const double value : results[4 + 4]) CHECK(value == 0);  // the gradient of a weight that no step used
  const Recording rowless = [](const Vars& v) { return with_gradients(simple, scanned, v, padded(v[0])); };
  const std::vector<Doubles> none = played(rowless, simple_points(0, 5));
  CHECK(shape_of(none[0]) == Shape{0, 5, 4});
  for (const double value : none[2 + 3]) CHECK(value == 0);
}

TEST_CASE("scan: inside a checkpoint, and a scan inside a scan") {
  const Recording nested = [](const Vars& v) {
    const ScanFunction inner = [&](const Vars& x, const Vars& h) {
      const Var next = tanh(h[0] * v[1] + x[0]);
      return std::make_pair(Vars{next}, Vars{next});
    };
    const ScanFunction outer = [&](const Vars& x, const Vars& h) {
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

TEST_CASE("scan: a failed call names the mistake and leaves the tape as it was") {
  Tape tape;
  const Var x = tape.input("x", {2, 5, 3}), y = tape.input("y", {2, 4, 3}), h = tape.input("h", {2, 3});
  const std::size_t size = tape.size();
  const ScanFunction good = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{in[0]}, Vars{s[0] + in[0]});
  };
  const ScanFunction wider = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{in[0]}, Vars{concat({s[0], in[0]}, 1)});
  };
  const ScanFunction fewer = [](const Vars& in, const Vars&) { return std::make_pair(Vars{in[0]}, Vars{}); };
  const ScanFunction drawing = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{categorical(in[0])}, s);
  };
  ScanOptions unfit;
  unfit.valid = tape.input("real", {3, 5}, Dtype::boolean);
  const std::size_t with_real = tape.size();
  CHECK_THROWS_WITH_AS(
      scan(good, {x, y}, {h}),
      "scan: the inputs must be equally long along axis 1, got float32 (2, 5, 3) and float32 (2, 4, 3)", ShapeError);
  CHECK_THROWS_WITH_AS(scan(wider, {x}, {h}),
                       "scan: next state 0 must be float32 (2, 3) like the state, the cell returned float32 (2, 6)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(scan(fewer, {x}, {h}),
                       "scan: the cell must return one next state for each of the 1 states, it returned 0", Error);
  CHECK_THROWS_WITH_AS(
      scan(drawing, {x}, {h}),
      "scan: categorical cannot draw its random numbers for all steps at once: use uniform in its place", Error);
  CHECK_THROWS_AS(scan(good, {x}, {h}, unfit), ShapeError);
  CHECK_THROWS_AS(scan(good, {}, {h}), Error);
  CHECK(tape.size() == with_real);
  CHECK(with_real == size + 1);
}

TEST_CASE("scan: in mode predict a cell must not call cache, and states must have the rows of the tokens") {
  Tape tape(Mode::predict);
  const Var tokens = tape.input("tokens", {2, 3, 4}), past = tape.input("past", {2}, Dtype::int64);
  tape.set_past(tokens, past, 8);
  const Var h = tape.input("h", {2, 4}), one = tape.input("one", {1, 4});
  const std::size_t size = tape.size();
  const ScanFunction caching = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{cache(expand_dims(in[0], 1))}, s);
  };
  const ScanFunction good = [](const Vars& in, const Vars& s) { return std::make_pair(Vars{in[0]}, Vars{s[0]}); };
  CHECK_THROWS_WITH_AS(scan(caching, {tokens}, {h}),
                       "scan: a cell cannot call cache: values that it carries must be its states", Error);
  CHECK_THROWS_AS(scan(good, {tokens}, {one}), ShapeError);
  CHECK(tape.size() == size);
  CHECK(tape.states().empty());
  scan(good, {tokens}, {h});
  CHECK(tape.states().size() == 1);
}
