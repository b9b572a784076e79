// What feeds are made of, and how outputs are read.
#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "allocations.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("numbers, lists, vectors and spans feed inputs") {
  Tape tape;
  const Var x = tape.input("x", {2, 3}), s = tape.input("s", {}), n = tape.input("n", {3}, Dtype::int64);
  const Var y = x * s + cast(n, Dtype::float32);
  Player player(tape, {y});
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto check = [&] {
    for (int i = 0; i < 6; ++i) CHECK(player.view(y)(i / 3, i % 3) == 2.5 * (i + 1) + 10 * (i % 3 + 1));
    player.play({{x, {0, 0, 0, 0, 0, 0}}, {s, 0}, {n, {0, 0, 0}}});
    CHECK(player.view(y)(1, 2) == 0);
  };
  player.play({{x, {1, 2, 3, 4, 5, 6}}, {s, 2.5}, {n, {10, 20, 30}}});
  check();
  player.play({{x, ArrayView(values, {2, 3})}, {s, 2.5f}, {n, std::vector<std::int64_t>{10, 20, 30}}});
  check();
  player.play(
      {{x, ArrayView(std::span<const float>(values), {2, 3})}, {s, 2.5}, {n, xt::xarray<std::int64_t>{10, 20, 30}}});
  check();
  std::vector<Feed> feeds;
  feeds.emplace_back(x, ArrayView(values, {2, 3}));
  feeds.emplace_back(s, 2.5);
  feeds.emplace_back(n, std::initializer_list<Literal>{10, 20, 30});
  player.play(feeds);
  check();
}

TEST_CASE("feeds that do not fit are errors with the line of the play or the feed") {
  Tape tape;
  const Var x = tape.input("x", {2, 2}), n = tape.input("n", {}, Dtype::int32),
            flag = tape.input("flag", {}, Dtype::boolean);
  const Var y = sum(x) * cast(n, Dtype::float32) + cast(flag, Dtype::float32);
  Player player(tape, {y});
  const std::vector<float> four{1, 2, 3, 4};
  CHECK_THROWS_WITH_AS(
      player.play({{x, four}, {n, 1}, {flag, true}}),
      "play: input 'x' is float32 (2, 2), fed with float32 (4,): give the shape too, ArrayView(values, shape)",
      ShapeError);
  CHECK_THROWS_WITH_AS(player.play({{x, {1, 2, 3}}, {n, 1}, {flag, true}}),
                       "an array of shape (2, 2) has 4 elements, the list 3", ShapeError);
  CHECK_THROWS_AS(player.play({{x, {1, 2, 3, 4}}, {n, 1.5}, {flag, true}}), DtypeError);
  CHECK_THROWS_AS(player.play({{x, {1, 2, 3, 4}}, {n, std::int64_t{1} << 40}, {flag, true}}), DtypeError);
  CHECK_THROWS_AS(player.play({{x, {1, 2, 3, 4}}, {n, 1}, {flag, 2}}), DtypeError);
  CHECK_THROWS_AS(player.play({{x, 1}, {n, 1}, {flag, true}}), ShapeError);
  CHECK_THROWS_WITH_AS(player.play({{n, 1}, {flag, true}}), "play: input 'x' (float32 (2, 2)) is not fed", Error);
  player.play({{x, {1, 2, 3, 4}}, {n, 2}, {flag, true}});
  CHECK(player.scalar(y) == 21);
  CHECK_THROWS_AS(player.play({{Var(), 1}}), HandleError);
}

TEST_CASE("outputs are seen as tensors, without a copy, and update weights in one line") {
  Tape tape;
  Array weights = array_of({1, 2, 3}, Dtype::float32, {3});
  const Var w = tape.parameter("w", weights), loss = sum(square(w)), g = grad(loss, w);
  Player player(tape, {loss, g});
  player.play();
  CHECK(player.tensor<float>(g).data() == player.view(g).as<float>());
  weights.tensor<float>() -= 0.25 * player.tensor<float>(g);
  CHECK(weights(2) == 1.5);
  player.play();
  CHECK(player.scalar(loss) == 0.25 + 1 + 2.25);
  CHECK_THROWS_AS(player.tensor<double>(g), DtypeError);
}

TEST_CASE("reading errors and stale vars name the line") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var y = x * 2;
  Player player(tape, {y});
  CHECK_THROWS_WITH_AS(player.view(y), "the player has not played yet", Error);
  CHECK_THROWS_WITH_AS(player.scalar(y), "the player has not played yet", Error);
  player.play({{x, {1, 2}}});
  CHECK_THROWS_WITH_AS(player.scalar(y), "scalar: the output has shape (2,), not one element", ShapeError);
  CHECK_THROWS_WITH_AS(player.value<float>(x),
                       "this var (#0 input) is not an output of the player: add it to the outputs", Error);
  const Var none;
  for (const auto& use : {+[](const Var& v) { static_cast<void>(v.rank()); }}) CHECK_THROWS_AS(use(none), HandleError);
  CHECK_THROWS_WITH_AS(none.shape(), "an empty var: it was never recorded", HandleError);
  CHECK_THROWS_WITH_AS(none.tape(), "an empty var: it was never recorded", HandleError);
  CHECK_THROWS_AS(x.size(1), ShapeError);
}

TEST_CASE("errors tell their op, file, line and shapes to programs") {
  Tape tape;
  const Var a = tape.input("a", {2, 3}), b = tape.input("b", {2, 3});
  int line = 0;
  try {
    line = __LINE__ + 1;
    matmul(a, b);
    FAIL("matmul took (2, 3) and (2, 3)");
  } catch (const Error& error) {
    CHECK(error.op() == "matmul");
    CHECK(error.file().find("feeding_test.cpp") != std::string::npos);
    CHECK(error.line() == line);
    CHECK(error.shapes() == std::vector<Shape>{{2, 3}, {2, 3}});
    const Error copy = error;
    CHECK(copy.line() == line);
    CHECK(std::string(copy.what()) == error.what());
  }
  const Error plain("a text");
  CHECK(plain.op().empty());
  CHECK(plain.file().empty());
  CHECK(plain.line() == 0);
  CHECK(plain.shapes().empty());
  Player player(tape, {a + b});
  try {
    line = __LINE__ + 1;
    player.play({{a, {1, 2, 3, 4, 5, 6}}});
    FAIL("b was not fed");
  } catch (const Error& error) {
    CHECK(error.line() == line);
  }
}

TEST_CASE("constants and assignments are short") {
  Tape tape(Dtype::float64);
  CHECK(tape.default_dtype() == Dtype::float64);
  CHECK(tape.constant(2.5).dtype() == Dtype::float64);
  CHECK(tape.constant(2).dtype() == Dtype::int64);
  CHECK(tape.constant(true).dtype() == Dtype::boolean);
  CHECK(tape.constant(2, Dtype::float32).dtype() == Dtype::float32);
  CHECK(tape.constant({1, 2.5}).dtype() == Dtype::float64);
  CHECK(evaluate(tape.constant({1, 2, 3}))(2) == 3);
  CHECK(tape.constant({1, 2, 3}).dtype() == Dtype::int64);
  CHECK(tape.constant({true, false}).dtype() == Dtype::boolean);
  CHECK_THROWS_AS(Tape{Dtype::int32}, DtypeError);

  const Var x = tape.constant({1.0, 2.0, 3.0});
  Var y = x;
  y += 1;
  y *= x;
  y -= 1.5;
  y /= 2;
  CHECK(evaluate(y)(2) == (4 * 3 - 1.5) / 2);
  CHECK(evaluate(x)(2) == 3);
  const Var m = reshape(arange(tape, 6), {2, 3});
  CHECK(evaluate(sum(m, 0))(2) == 7);
  CHECK(evaluate(sum(m, {0, 1}))() == 15);
  CHECK(evaluate(sum(m))() == 15);
  CHECK(evaluate(slice(m, {1, 1}))(0, 1) == 5);
  CHECK(eye(tape, 3).shape() == Shape{3, 3});
  const Var w = tape.parameter("w", xt::xarray<double>{3, 4});
  CHECK(evaluate(grad(sum(square(w)), w))(1) == 8);
  CHECK(grad(sum(square(w)), {w}).size() == 1);
  CHECK_THROWS_AS(grad(w, w), ShapeError);
}
