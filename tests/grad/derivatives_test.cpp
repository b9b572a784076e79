// Jacobians, Hessians and products with them.
#include "xtape/derivatives.hpp"

#include <doctest/doctest.h>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Numbers = xt::xarray<double>;
const Numbers point{0.3, -1.2, 0.8, 2.0};

/// y_i = sum_j x_j^2 sin(i + j) for 6 rows, as [2, 3].
Var curved(const Var& x) {
  const Tape tape = x.tape();
  const Var rows = cast(iota(tape, {6, 4}, 0) + iota(tape, {6, 4}, 1), Dtype::float64);
  return reshape(matmul(sin(rows), square(x)), {2, 3});
}
Numbers jacobian_of_curved() {
  Numbers found = xt::zeros<double>({2, 3, 4});
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j) found(i / 3, i % 3, j) = 2 * point(j) * std::sin(i + j);
  return found;
}
}  // namespace

TEST_CASE("a Jacobian has the shape of the output followed by that of the input, in every mode and for every chunk") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64);
  const Var y = curved(x);
  for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::forward, JacobianMode::reverse})
    for (const std::int64_t chunk_size : {0, 1, 2, 3, 4, 5, 6, 100}) {
      CAPTURE(chunk_size);
      const Var found = jacobian(y, x, {.mode = mode, .chunk_size = chunk_size});
      REQUIRE(found.shape() == Shape{2, 3, 4});
      CHECK(xt::allclose(evaluate(found, {{x, point}}).to<double>(), jacobian_of_curved()));
    }
}

TEST_CASE("the Jacobian by several inputs, also by one that the output does not depend on") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64), z = tape.input("z", {1, 2}, Dtype::float64),
            other = tape.input("other", {3}, Dtype::float64);
  for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse}) {
    const Vars found = jacobian(x * sum(z), {x, z, other}, {.mode = mode});
    CHECK(found[1].shape() == Shape{4, 1, 2});
    CHECK(found[2].shape() == Shape{4, 3});
    const Numbers at{{2.0, 5.0}};
    CHECK(evaluate(found[0], {{x, point}, {z, at}}).to<double>() == Numbers(xt::eye<double>(4) * 7));
    CHECK(evaluate(found[1], {{x, point}, {z, at}}).to<double>()(2, 0, 1) == 0.8);
    CHECK(evaluate(found[2], {{x, point}, {z, at}}).to<double>() == Numbers(xt::zeros<double>({4, 3})));
  }
}

TEST_CASE("a Hessian is the Jacobian of the gradient; a product with it needs no Hessian") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64), v = tape.input("v", {4}, Dtype::float64);
  const Var y = sum(curved(x) * curved(x));
  const Var full = hessian(y, x);
  CHECK(full.shape() == Shape{4, 4});
  const Numbers direction{1.0, -0.5, 2.0, 0.1};
  const auto play = [&](const Var& var) { return evaluate(var, {{x, point}, {v, direction}}).to<double>(); };
  CHECK(xt::allclose(play(full), xt::transpose(play(full))));
  CHECK(xt::allclose(play(hvp(y, {x}, {v})[0]), play(matmul(full, v))));
  CHECK(xt::allclose(play(hessian(y, x, {.mode = JacobianMode::reverse, .chunk_size = 3})), play(full)));
  CHECK(xt::allclose(play(jacobian(full, x))(1, 2, 3), play(grad(sum(slice(full, {1, 2}, {2, 3})), {x})[0])(3)));
}

TEST_CASE("the Jacobian through dropout has the numbers that the output was drawn with") {
  Tape tape;
  const Var x = tape.input("x", {6}, Dtype::float64);
  const Var dropped = dropout(x, 0.5);
  const Var kept = checkpoint([](const Vars& given) { return Vars{dropout(given[0], 0.5) * 3}; }, {x})[0];
  const Numbers at = xt::ones<double>({6});
  for (const Var& y : {dropped, kept})
    for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse})
      for (const std::int64_t chunk_size : {0, 2, 4}) {
        CAPTURE(chunk_size);
        Player player(tape, {y, jacobian(y, x, {.mode = mode, .chunk_size = chunk_size})});
        for (const std::uint64_t step : {1, 2}) {
          player.play({{x, at}}, step);
          const Numbers values = player.view(y).to<double>();
          CHECK(player.view(player.outputs()[1]).to<double>() == Numbers(xt::diag(values)));
        }
      }
}

TEST_CASE("the Jacobian through attention has the numbers of its dropout") {
  Tape tape;
  const Var q = tape.input("q", {1, 2, 2, 1}, Dtype::float64), v = tape.input("v", {1, 2, 2, 2}, Dtype::float64);
  const Var y = apply(builtin_ops().at("attention"), {q, q, v},
                      {{"scores", std::string("bqhe,bkhe->bhqk")},
                       {"outputs", std::string("bhqk,bkhd->bqhd")},
                       {"scale", 1.0},
                       {"rate", 0.5},
                       {"draws", std::int64_t{58}}})[0];
  Numbers queries = xt::zeros<double>({1, 2, 2, 1}), ones = xt::ones<double>({1, 2, 2, 2});
  queries(0, 1, 0, 0) = 0.7;
  for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse}) {
    const Var sums = sum(jacobian(y, v, {.mode = mode, .chunk_size = 0}), {4, 5, 6, 7});
    Player player(tape, {y, sums});
    for (const std::uint64_t step : {0, 1, 2}) {
      player.play({{q, queries}, {v, ones}}, step);  // y is linear in v
      CHECK(xt::allclose(player.view(sums).to<double>(), player.view(y).to<double>()));
    }
  }
}

TEST_CASE("scalars have Jacobians and Hessians of no axes") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  const Numbers three(3.0);
  CHECK(*evaluate(jacobian(x * x, x), {{x, three}}).as<double>() == 6);
  CHECK(*evaluate(hessian(x * x * x, x), {{x, three}}).as<double>() == 18);
}

TEST_CASE("derivatives refuse what does not fit, and then nothing is recorded") {
  Tape tape, elsewhere;
  const Var x = tape.input("x", {4}, Dtype::float64), n = tape.input("n", {4}, Dtype::int64);
  const Var far = elsewhere.input("far", {4}, Dtype::float64), y = x * 2, total = sum(y);
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(jacobian(y, x, {.chunk_size = -1}), doctest::Contains("chunk_size must not be negative, got -1"),
                       Error);
  CHECK_THROWS_WITH_AS(jacobian(y, Vars{}), doctest::Contains("jacobian: needs at least one input"), Error);
  CHECK_THROWS_AS(jacobian(y, far), HandleError);
  CHECK_THROWS_AS(jacobian(y, n), DtypeError);
  CHECK_THROWS_AS(jacobian(n, x), DtypeError);
  CHECK_THROWS_WITH_AS(hessian(y, x), doctest::Contains("hessian: the output must have one element, got (4,)"),
                       ShapeError);
  CHECK_THROWS_AS(hvp(total, {x}, {n}), DtypeError);
  CHECK(tape.size() == size);
}
