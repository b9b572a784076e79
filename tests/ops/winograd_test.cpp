#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

using namespace xtape;

namespace {
/// A convolution and its gradient by x, of an x and a cotangent that are inputs. Padding is that of both axes.
struct Convolution {
  std::int64_t examples, channels, height, width, results, vertical, horizontal;
  Shape x() const { return {examples, channels, height, width}; }
  Shape weight() const { return {results, channels, 3, 3}; }
  Shape y() const { return {examples, results, height + 2 * vertical - 2, width + 2 * horizontal - 2}; }
  Vars both(const Vars& v) const {
    const Var y = conv2d(v[0], v[1], {}, {1}, {vertical, horizontal});
    return {y, grad({y}, {v[0]}, {v[2]})[0]};
  }
};

std::int64_t winograd_steps(const Player& player) {
  return std::count_if(player.plan().steps.begin(), player.plan().steps.end(),
                       [](const Plan::Step& step) { return step.op == "winograd_conv"; });
}
}  // namespace

TEST_CASE("op conv: by Winograd's algorithm, for sizes with and without whole registers, tiles and blocks") {
  const Convolution all[] = {{40, 16, 2, 2, 16, 1, 1}, {4, 17, 5, 7, 19, 1, 1},   {2, 16, 9, 70, 16, 0, 2},
                             {5, 32, 8, 8, 33, 1, 1},  {40, 16, 3, 3, 16, 0, 0},  {7, 24, 4, 6, 16, 3, 4},
                             {8, 40, 1, 9, 16, 1, 1},  {1, 16, 33, 65, 31, 2, 1}, {10, 16, 4, 4, 48, 1, 1}};
  for (const Convolution& conv : all) {
    CAPTURE(conv.x());
    CAPTURE(conv.weight());
    const Doubles x = numbers(conv.x(), 1), w = numbers(conv.weight(), 2), dy = numbers(conv.y(), 3);
    const std::vector<Doubles> found = played([&](const Vars& v) { return conv.both(v); }, {x, w, dy}, 1e-12, 1e-4);
    Doubles y = xt::zeros_like(dy), dx = xt::zeros_like(x);
    for_each_index(conv.y(), [&](const Shape& at) {
      const auto b = static_cast<std::size_t>(at[0]), o = static_cast<std::size_t>(at[1]);
      for_each_index({conv.channels, 3, 3}, [&](const Shape& of) {
        const std::int64_t i = at[2] + of[1] - conv.vertical, j = at[3] + of[2] - conv.horizontal;
        if (i < 0 || i >= conv.height || j < 0 || j >= conv.width) return;
        y(b, o, at[2], at[3]) += x(b, of[0], i, j) * w(o, of[0], of[1], of[2]);
        dx(b, of[0], i, j) += dy(b, o, at[2], at[3]) * w(o, of[0], of[1], of[2]);
      });
    });
    CHECK(near(found[0], y, 1e-12));
    CHECK(near(found[1], dx, 1e-12));

    Tape tape;
    const Vars inputs{tape.input("x", conv.x()), tape.input("w", conv.weight()), tape.input("dy", conv.y())};
    CHECK(winograd_steps(Player(tape, conv.both(inputs))) == 2);
  }
}

TEST_CASE("op conv: along one axis by Winograd's algorithm, for windows with and without a rest") {
  struct Line {
    std::int64_t examples, channels, length, results, window, padding;
  };
  const Line all[] = {{40, 16, 3, 16, 3, 0},  {8, 17, 10, 19, 3, 1},  {8, 16, 9, 32, 4, 2},   {10, 24, 7, 16, 5, 2},
                      {40, 16, 6, 16, 6, 0},  {2, 32, 150, 16, 7, 3}, {40, 16, 1, 16, 7, 3},  {14, 16, 5, 16, 3, 4},
                      {40, 16, 12, 16, 8, 4}, {1, 40, 401, 33, 9, 4}, {4, 16, 20, 24, 10, 11}};
  for (const Line& line : all) {
    const std::int64_t places = line.length + 2 * line.padding + 1 - line.window;
    const Doubles x = numbers({line.examples, line.channels, line.length}, 1),
                  w = numbers({line.results, line.channels, line.window}, 2),
                  dy = numbers({line.examples, line.results, places}, 3);
    CAPTURE(line.window);
    CAPTURE(line.length);
    const auto both = [&](const Vars& v) {
      const Var y = conv1d(v[0], v[1], {}, {1}, line.padding);
      return Vars{y, grad({y}, {v[0]}, {v[2]})[0]};
    };
    const std::vector<Doubles> found = played(both, {x, w, dy}, 1e-12, 1e-4);
    Doubles y = xt::zeros_like(dy), dx = xt::zeros_like(x);
    for_each_index(shape_of(dy), [&](const Shape& at) {
      for_each_index({line.channels, line.window}, [&](const Shape& of) {
        const std::int64_t i = at[2] + of[1] - line.padding;
        if (i < 0 || i >= line.length) return;
        y(at[0], at[1], at[2]) += x(at[0], of[0], i) * w(at[1], of[0], of[1]);
        dx(at[0], of[0], i) += dy(at[0], at[1], at[2]) * w(at[1], of[0], of[1]);
      });
    });
    CHECK(near(found[0], y, 1e-12));
    CHECK(near(found[1], dx, 1e-12));

    Tape tape;
    const Vars inputs{tape.input("x", shape_of(x)), tape.input("w", shape_of(w)), tape.input("dy", shape_of(dy))};
    CHECK(winograd_steps(Player(tape, both(inputs))) == 2);
  }
}

TEST_CASE("op conv: Winograd's algorithm serves windows of float32 beside each other, of sizes that it knows") {
  Tape tape;
  const Var x = tape.input("x", {5, 16, 8, 8}), w = tape.input("w", {16, 16, 3, 3});
  const auto steps = [&](const Var& y) { return winograd_steps(Player(tape, {y})); };
  CHECK(steps(conv2d(x, w)) == 1);
  CHECK(steps(conv2d(x, w, {}, {2})) == 0);
  CHECK(steps(conv2d(x, w, {}, {1}, 0, {2})) == 0);
  CHECK(steps(conv2d(x, tape.input("g", {16, 8, 3, 3}), {}, {1}, 0, {1}, 2)) == 0);
  CHECK(steps(conv2d(x, tape.input("v", {16, 16, 3, 1}))) == 0);
  CHECK(steps(conv1d(tape.input("l", {1, 16, 8}), tape.input("p", {16, 16, 2}))) == 0);
  CHECK(steps(conv2d(tape.input("few", {5, 3, 8, 8}), tape.input("u", {16, 3, 3, 3}))) == 0);
  CHECK(steps(conv2d(tape.input("small", {1, 16, 14, 14}), w)) == 0);  // 36 tiles
  CHECK(steps(conv2d(cast(x, Dtype::float64), cast(w, Dtype::float64))) == 0);
  CHECK(conv2d(tape.input("none", {0, 16, 8, 8}), w).shape() == Shape{0, 16, 6, 6});
  CHECK(steps(conv2d(tape.input("nothing", {0, 16, 8, 8}), w)) == 0);
}

TEST_CASE("op conv: by Winograd's algorithm, NaN stays within its example") {
  Doubles x = numbers({5, 16, 6, 6}, 1);
  x(1, 4, 2, 2) = std::numeric_limits<double>::quiet_NaN();
  Tape tape;
  const Var given = tape.input("x", {5, 16, 6, 6}), w = tape.input("w", {16, 16, 3, 3});
  const Var y = conv2d(given, w, {}, {1}, 1);
  Player player(tape, {y});
  player.play({{given, xt::xarray<float>(xt::cast<float>(x))},
               {w, xt::xarray<float>(xt::cast<float>(numbers({16, 16, 3, 3}, 2)))}});
  const Doubles found = as_doubles(player.view(y));
  for_each_index({5, 16, 6, 6}, [&](const Shape& at) {
    const bool sees = at[0] == 1 && std::abs(at[2] - 2) <= 1 && std::abs(at[3] - 2) <= 1;
    if (sees) CHECK(std::isnan(element(found, at)));
    if (at[0] != 1) CHECK(std::isfinite(element(found, at)));
  });
}
