// Scans that keep only the states between segments (ScanOptions::checkpoint_every), compared with scans that keep all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "recurrences.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"

using namespace xtape;

namespace {
using Lengths = std::vector<std::int64_t>;
using Options = ScanOptions (*)(const Var&);

ScanOptions in_segments(ScanOptions options, const Lengths& lengths) {
  options.checkpoint_every = lengths;
  return options;
}

bool same(const Doubles& a, const Doubles& b) {
  return shape_of(a) == shape_of(b) && std::equal(a.begin(), a.end(), b.begin(), same_number);
}

/// The outputs as players with all passes compute them, in both precisions.
std::vector<Doubles> played_fast(const Recording& recording, const std::vector<Doubles>& points) {
  std::vector<Doubles> results = played_with(recording, points, Dtype::float64, {});
  for (Doubles& result : played_with(recording, points, Dtype::float32, {})) results.push_back(std::move(result));
  return results;
}

/// Checks all results for equality up to rounding, and the first `exact` ones for equal bits.
void check_segments(Recurrence model, const std::vector<Doubles>& points, std::size_t exact) {
  for (const Options options : {plain, backwards, padded, padded_backwards}) {
    const auto recording = [&](const Lengths& lengths) -> Recording {
      return [=](const Vars& v) { return with_gradients(model, scanned, v, in_segments(options(v[0]), lengths)); };
    };
    const std::vector<Doubles> truth = played(recording({}), points, 1e-12, 1e-4);
    const std::vector<Doubles> bits = played_fast(recording({}), points);
    for (const Lengths& lengths : std::vector<Lengths>{{1}, {2}, {3}, {6}, {7}, {100}, {4, 2}, {5, 3, 2}, {100, 3}}) {
      CAPTURE(lengths.front());
      const std::vector<Doubles> found = played(recording(lengths), points, 1e-12, 1e-4);
      REQUIRE(found.size() == truth.size());
      for (std::size_t i = 0; i < truth.size(); ++i) {
        CAPTURE(i);
        CHECK(near(found[i], truth[i], 1e-12));
      }
      if (exact == 0) continue;
      const std::vector<Doubles> fast = played_fast(recording(lengths), points);
      for (std::size_t i = 0; i < fast.size(); ++i) {
        CAPTURE(i);
        if (i % truth.size() < exact) CHECK(same(fast[i], bits[i]));
      }
    }
  }
}

/// x [b, t, n], h [b, n], u [n, n], gain [n]; with a state that counts, and an output that is bool.
Vars counting(Steps steps, const Vars& v, const ScanOptions& options) {
  const ScanFunction cell = [&](const Vars& x, const Vars& s) {
    const Var next = tanh(matmul(s[0], v[2]) * v[3] + x[0]);
    const Var high = next > 0.0;
    return std::make_pair(Vars{next, high, x[0], s[0]}, Vars{next, s[1] + cast(high, Dtype::int64)});
  };
  const Scanned result = steps(cell, {v[0]}, {v[1], zeros(v[0].tape(), v[1].shape(), Dtype::int64)}, options);
  const auto wide = [&](const Var& x) { return cast(x, v[0].dtype()); };
  return {result.outputs[0], wide(result.outputs[1]), result.outputs[2],
          result.outputs[3], result.states[0],        wide(result.states[1])};
}
std::vector<Doubles> counting_points(std::int64_t length) {
  return {numbers({3, length, 4}, 1), numbers({3, 4}, 2), numbers({4, 4}, 3), numbers({4}, 4)};
}

/// Recorded with weights, so that each segment has a product with one.
Vars gated(const Vars& v, const Lengths& lengths) {
  return simple(scanned, v, in_segments({}, lengths));
}

std::size_t arena_bytes(std::int64_t length, const Lengths& lengths) {
  Tape tape;
  Vars v;
  for (const Doubles& point : simple_points(8, length))
    v.push_back(tape.input("x" + std::to_string(v.size()), shape_of(point)));
  const Var last = gated(v, lengths)[1];
  return Player(tape, grad(sum(square(last)), {v[2], v[3], v[4]})).plan().arena_bytes;
}
}  // namespace

TEST_CASE("scan: segments give the bits of the outputs, and the gradients, of a scan without them") {
  check_segments(counting, counting_points(7), 6);
  check_segments(simple, simple_points(3, 7), 0);  // products of inputs in the cell may round differently
  check_segments(long_short, long_short_points(7), 0);
}

TEST_CASE("scan: segments along the first axis, without steps, and without rows") {
  const auto recording = [](const Lengths& lengths) -> Recording {
    return [=](const Vars& v) {
      ScanOptions options = in_segments({}, lengths);
      options.axis = 0;
      return with_gradients(counting, scanned, v, options);
    };
  };
  const std::vector<Doubles> along_first = {numbers({7, 3, 4}, 1), numbers({3, 4}, 2), numbers({4, 4}, 3),
                                            numbers({4}, 4)};
  const std::vector<Doubles> truth = played(recording({}), along_first), found = played(recording({3}), along_first);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(found[i], truth[i], 1e-12));

  const Recording in_twos = [](const Vars& v) { return with_gradients(counting, scanned, v, in_segments({}, {2})); };
  const std::vector<Doubles> none = played(in_twos, counting_points(0));
  CHECK(shape_of(none[0]) == Shape{3, 0, 4});
  CHECK(near(none[4], counting_points(0)[1], 0));
  std::vector<Doubles> rowless = counting_points(5);
  rowless[0] = numbers({0, 5, 4});
  rowless[1] = numbers({0, 4});
  const std::vector<Doubles> empty = played(in_twos, rowless);
  CHECK(shape_of(empty[0]) == Shape{0, 5, 4});
  for (const double value : empty[6 + 2]) CHECK(value == 0);
}

TEST_CASE("scan: gradients through segments, and second ones, agree with finite differences") {
  for (const Lengths& lengths : std::vector<Lengths>{{2}, {4, 2}}) {
    check_gradients([&](const Vars& v) { return gated(v, lengths); }, simple_points(2, 5));
    check_gradients([&](const Vars& v) { return long_short(scanned, v, in_segments(padded_backwards(v[0]), lengths)); },
                    long_short_points(5));
  }
}

TEST_CASE("scan: a cell of segments may use an outside array, look up slices, and scan by itself") {
  const auto recording = [](const Lengths& lengths) -> Recording {
    return [=](const Vars& v) {
      const Var tokens = cast(v[3], Dtype::int64);
      const ScanFunction inner = [&](const Vars& x, const Vars& h) {
        const Var next = tanh(h[0] * v[2] + x[0]);
        return std::make_pair(Vars{}, Vars{next});
      };
      const ScanFunction cell = [&](const Vars& x, const Vars& h) {
        const Var row = take(v[1], x[1]) * 0.5;
        const Scanned inside = scan(inner, {x[0]}, {h[0] + row}, in_segments({}, {2}));
        return std::make_pair(Vars{inside.states[0], exp(v[2])}, inside.states);
      };
      const auto block = [&](const Vars& in) {
        return scan(cell, {in[0], tokens}, {zeros(in[0].tape(), {2}, in[0].dtype())}, in_segments({}, lengths)).outputs;
      };
      Vars results = checkpoint(block, {v[0]});
      const Var loss = sum(square(results[0])) + sum(results[1]);
      for (const Var& gradient : grad(loss, {v[0], v[1], v[2]})) results.push_back(gradient);
      return results;
    };
  };
  std::vector<Doubles> points = {numbers({2, 5, 3}, 1), numbers({4}, 2), numbers({2}, 3)};
  points.push_back(made_from({2, 5}, [](const Shape& at) { return static_cast<double>((at[0] * 3 + at[1]) % 4); }));
  const std::vector<Doubles> truth = played(recording({}), points), found = played(recording({2}), points);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(found[i], truth[i], 1e-12));
}

TEST_CASE("scan: tangents through segments agree with finite differences and with those of a scan without them") {
  const auto recording = [](const Lengths& lengths) -> Recording {
    return [=](const Vars& v) {
      const Vars given(v.begin(), v.begin() + 5), along(v.begin() + 5, v.end());
      Vars results = gated(given, lengths);
      const Vars tangents = jvp(results, given, along);
      results.insert(results.end(), tangents.begin(), tangents.end());
      return results;
    };
  };
  std::vector<Doubles> points = simple_points(2, 5);
  for (std::size_t i = 0; i < 5; ++i) points.push_back(numbers(shape_of(points[i]), 10 + static_cast<unsigned>(i)));
  const std::vector<Doubles> truth = played(recording({}), points), found = played(recording({2}), points);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(found[i], truth[i], 1e-12));
  const double step = 1e-6;
  const auto moved = [&](double by) {
    std::vector<Doubles> there(points.begin(), points.begin() + 5);
    for (std::size_t i = 0; i < 5; ++i) there[i] += by * points[5 + i];
    return played_with([](const Vars& v) { return gated(v, {2}); }, there, Dtype::float64, {});
  };
  const std::vector<Doubles> after = moved(step), before = moved(-step);
  for (std::size_t i = 0; i < 2; ++i) CHECK(near(found[2 + i], (after[i] - before[i]) / (2 * step), 1e-8));
}

TEST_CASE("scan: segments are mapped as each element by itself") {
  const auto of_row = [](const Vars& v) {
    const Vars results = gated(v, {2});
    const Vars gradients = grad(sum(square(results[0])) + sum(results[1]), {v[0], v[3]});
    return Vars{results[0], results[1], gradients[0], gradients[1]};
  };
  const Recording mapped = [&](const Vars& v) {
    return vmap(of_row, v, {.in_axes = {0, std::nullopt, std::nullopt, 0, std::nullopt}});
  };
  const Recording in_turn = [&](const Vars& v) {
    std::vector<Vars> columns(4);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Vars results = of_row({at_step(v[0], 0, i), v[1], v[2], at_step(v[3], 0, i), v[4]});
      for (std::size_t k = 0; k < 4; ++k) columns[k].push_back(results[k]);
    }
    Vars results;
    for (const Vars& column : columns) results.push_back(stack(column, 0));
    return results;
  };
  const std::vector<Doubles> points = {numbers({3, 2, 5, 2}, 1), numbers({2, 4}, 2), numbers({2, 4}, 3),
                                       numbers({3, 4, 4}, 4), numbers({4}, 5)};
  const std::vector<Doubles> found = played(mapped, points), truth = played(in_turn, points);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(near(found[i], truth[i], 1e-12));
}

TEST_CASE("scan: segments draw the random numbers of a scan without them, the same ones in the gradient") {
  const auto recording = [](const Lengths& lengths, Options options) -> Recording {
    return [=](const Vars& v) {
      const ScanFunction cell = [](const Vars& x, const Vars& h) {
        const Var kept = checkpoint([](const Vars& u) { return Vars{dropout(u[0], 0.5)}; }, {x[0] + h[0] * 0})[0];
        return std::make_pair(Vars{kept}, Vars{h[0] + uniform(x[0].tape(), x[0].shape(), 0, 1, x[0].dtype())});
      };
      const Scanned result = scan(cell, {v[0]}, {v[1]}, in_segments(options(v[0]), lengths));
      return Vars{result.outputs[0], result.states[0], grad(sum(result.outputs[0]), {v[0]})[0]};
    };
  };
  const std::vector<Doubles> points = {xt::ones<double>({4, 7, 50}), xt::zeros<double>({4, 50})};
  for (const Options options : {plain, backwards}) {
    const std::vector<Doubles> truth = played(recording({}, options), points);
    const std::vector<Doubles> bits = played_fast(recording({}, options), points);
    CHECK(std::count(truth[0].begin(), truth[0].end(), 0.0) > 500);
    for (const Lengths& lengths : std::vector<Lengths>{{1}, {3}, {4, 2}}) {
      const std::vector<Doubles> found = played(recording(lengths, options), points);
      for (std::size_t i = 0; i < truth.size(); ++i) CHECK(same(found[i], truth[i]));
      CHECK(same(found[0], found[2]));  // the mask is the same in both
      const std::vector<Doubles> fast = played_fast(recording(lengths, options), points);
      for (std::size_t i = 0; i < fast.size(); ++i) CHECK(same(fast[i], bits[i]));
    }
  }
}

TEST_CASE("scan: with segments the gradient needs the memory of some steps, however the length divides") {
  const std::size_t all = arena_bytes(400, {});
  CAPTURE(all);
  for (const std::int64_t steps : {10, 20, 40, 21}) {
    CAPTURE(steps);
    const std::size_t some = arena_bytes(400, {steps});
    CAPTURE(some);
    CHECK(some * 3 < all);
  }
  CHECK(arena_bytes(400, {400}) == all);
  CHECK(arena_bytes(6400, {400, 20}) < arena_bytes(6400, {400}));
  CHECK(arena_bytes(6400, {400, 20}) < arena_bytes(6400, {20}));
}

TEST_CASE("scan: a segment must have a step, and a scan that continues from caches has no segments") {
  Tape tape;
  const Var x = tape.input("x", {2, 5, 3}), h = tape.input("h", {2, 3});
  const std::size_t size = tape.size();
  const ScanFunction cell = [](const Vars& in, const Vars& s) {
    return std::make_pair(Vars{in[0]}, Vars{s[0] + in[0]});
  };
  for (const Lengths& lengths : std::vector<Lengths>{{0}, {4, 0}})
    CHECK_THROWS_WITH_AS(scan(cell, {x}, {h}, in_segments({}, lengths)),
                         "scan: 'checkpoint_every' must be a number of steps, at least 1, got 0; leave it empty to "
                         "keep the values of all steps",
                         Error);
  CHECK_THROWS_AS(scan(cell, {x}, {h}, in_segments({}, {-3})), Error);
  CHECK(tape.size() == size);

  const auto predicting = [&](const Lengths& lengths) {
    Tape with_past(Mode::predict);
    const Var tokens = with_past.input("tokens", {2, 3, 4}), past = with_past.input("past", {2}, Dtype::int64);
    with_past.set_past(tokens, past, 8);
    scan(cell, {tokens}, {with_past.input("h", {2, 4})}, in_segments({}, lengths));
    CHECK(with_past.states().size() == 1);
    return with_past.size();
  };
  CHECK(predicting({2}) == predicting({}));
}

TEST_CASE("scan: segments whose steps read nothing") {
  Tape tape;
  const Var x = tape.input("x", {2, 5});
  const ScanFunction cell = [&](const Vars&, const Vars&) {
    return std::make_pair(Vars{full(tape, {2}, 3.0)}, Vars{});
  };
  const Var threes = scan(cell, {x}, {}, in_segments({}, {2})).outputs[0];
  const xt::xarray<float> values = value<float>(threes, {{x, xt::xarray<float>(xt::zeros<float>({2, 5}))}});
  CHECK(values == xt::xarray<float>(3 * xt::ones<float>({2, 5})));
  const ScanFunction literal = [&](const Vars&, const Vars&) {
    return std::make_pair(Vars{tape.constant(Array(xt::xarray<float>(3.0F)))}, Vars{});
  };
  ScanOptions along_first = in_segments({}, {2});
  along_first.axis = 0;
  const Var y = tape.input("y", {5});
  const Var three = scan(literal, {y}, {}, along_first).outputs[0];
  CHECK(value<float>(three, {{y, xt::xarray<float>(xt::zeros<float>({5}))}})(4) == 3);
}
