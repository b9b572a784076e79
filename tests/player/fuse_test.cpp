// Fusion across forward and backward: where it happens, where it must not, and that the values stay.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "steps.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Attention's scores, before their softmax, on inputs of which some rows are masked entirely.
struct Scores {
  Tape tape;
  Var x = tape.input("x", {2, 5, 7}, Dtype::float64);
  Var mask = tape.input("mask", {5, 7}, Dtype::boolean);
  Array x_values{Dtype::float64, {2, 5, 7}};
  Array mask_values{Dtype::boolean, {5, 7}};

  Scores() {
    for (std::int64_t i = 0; i < x_values.count(); ++i) x_values.as<double>()[i] = std::sin(static_cast<double>(i));
    for (std::int64_t i = 0; i < 35; ++i) mask_values.as<bool>()[i] = i / 7 == 2 || i % 7 > i / 7 + 1;
  }
  Var filled(const Var& from, double divisor, double value = -infinity) const {
    return masked_fill(from / divisor, mask, value);
  }
  std::vector<Feed> feeds() const { return {{x, x_values}, {mask, mask_values}}; }
};

/// How often the fused op and its gradient are played for `outputs`, whose values must be those without fusion.
std::pair<std::int64_t, std::int64_t> fused(const Scores& scores, const Vars& outputs, std::vector<Feed> more = {}) {
  std::vector<Feed> feeds = scores.feeds();
  feeds.insert(feeds.end(), more.begin(), more.end());
  Player player(scores.tape, outputs);
  player.play(feeds);
  PlayerOptions off;
  off.passes.fuse = false;
  Player plain(scores.tape, outputs, off);
  plain.play(feeds);
  CHECK(steps(plain, "masked_softmax") == 0);
  for (const Var& output : outputs) {
    const xt::xarray<double> found = player.value<double>(output), wanted = plain.value<double>(output);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(found.data()[i] == doctest::Approx(wanted.data()[i]).epsilon(1e-12));
  }
  return {steps(player, "masked_softmax"), steps(player, "masked_softmax_grad")};
}

using Count = std::pair<std::int64_t, std::int64_t>;
}  // namespace

TEST_CASE("scale, mask and softmax become one op, forward and backward") {
  Scores s;
  const Var y = softmax(s.filled(s.x, 1.7));
  const Var loss = sum(square(y) * s.x);
  CHECK(fused(s, {y}) == Count{1, 0});
  const Var dx = grad(loss, {s.x})[0];
  CHECK(fused(s, {loss, dx}) == Count{1, 1});
  CHECK(fused(s, {y, dx, loss}) == Count{1, 1});
}

TEST_CASE("two places are fused each by itself") {
  Scores s;
  const Var first = softmax(s.filled(s.x, 1.7));
  const Var second = softmax(s.filled(first + s.x, 0.9));
  const Var loss = sum(square(second));
  CHECK(fused(s, {loss, grad(loss, {s.x})[0]}) == Count{2, 2});
}

TEST_CASE("no fusion where an interior value is used elsewhere or asked for") {
  Scores s;
  const Var scaled = s.x / 1.7;
  const Var y = softmax(masked_fill(scaled, s.mask, -infinity));
  const Var loss = sum(square(y));
  const Vars gradients = grad(loss, {s.x, scaled});
  CHECK(fused(s, {y, scaled}) == Count{0, 0});
  CHECK(fused(s, {y, sum(scaled)}) == Count{0, 0});
  CHECK(fused(s, {loss, gradients[0], gradients[1]}) == Count{0, 0});
}

TEST_CASE("no fusion where an interior value is the cotangent") {
  Scores s;
  const Var scaled = s.x / 1.7;
  const Var y = softmax(masked_fill(scaled, s.mask, -infinity));
  const Var other = s.x / 3;
  CHECK(fused(s, grad(Vars{y}, {s.x}, {other})) == Count{1, 1});
  CHECK(fused(s, grad(Vars{y}, {s.x}, {scaled})) == Count{0, 0});
}

TEST_CASE("no fusion where two sweeps went over the pattern") {
  Scores s;
  const Var y = softmax(s.filled(s.x, 1.7));
  const Var a = grad(sum(square(y)), {s.x})[0];
  const Var b = grad(sum(sin(y)), {s.x})[0];
  CHECK(fused(s, {a, b}) == Count{0, 0});
  CHECK(fused(s, {a}) == Count{1, 1});  // the other sweep is not played
}

TEST_CASE("no fusion under a derivative of the derivative") {
  Scores s;
  const Var y = softmax(s.filled(s.x, 1.7));
  const Var dx = grad(sum(square(y)), {s.x})[0];
  CHECK(fused(s, {grad(sum(square(dx)), {s.x})[0]}) == Count{0, 0});
}

TEST_CASE("no fusion where the fused gradient declines what the expansion gives") {
  Scores s;
  const Var divisor = s.tape.input("divisor", {}, Dtype::float64);
  const Var y = softmax(masked_fill(s.x / divisor, s.mask, -infinity));
  const Vars gradients = grad(sum(square(y)), {s.x, divisor});
  const xt::xarray<double> value(1.3);
  CHECK(fused(s, gradients, {{divisor, value}}) == Count{0, 0});
  CHECK(fused(s, {y}, {{divisor, value}}) == Count{1, 0});
}

TEST_CASE("no fusion of what only looks alike") {
  Scores s;
  CHECK(fused(s, {softmax(s.filled(s.x, 1.7, -1e9))}) == Count{0, 0});
  CHECK(fused(s, {softmax(s.filled(s.x, 1.7), 1)}) == Count{0, 0});
  const Var row = sum(s.x, {0, 1});                               // (7,)
  CHECK(fused(s, {softmax(s.filled(row, 1.7))}) == Count{0, 0});  // the mask would widen x
}
