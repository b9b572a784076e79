// Systems of linear equations that products give.
#include "xtape/linear_solve.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/loops.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Doubles = xt::xarray<double>;

/// Reproducible numbers in [-1, 1).
Doubles numbers(const std::vector<std::size_t>& shape, std::uint32_t seed) {
  Doubles found = Doubles::from_shape(shape);
  for (double& each : found) {
    seed = seed * 1664525u + 1013904223u;
    each = 2.0 * seed / 4294967296.0 - 1;
  }
  return found;
}
Doubles times(const Doubles& a, const Doubles& b) {
  Doubles product = xt::zeros<double>({a.shape(0), b.shape(1)});
  for (std::size_t i = 0; i < a.shape(0); ++i)
    for (std::size_t j = 0; j < b.shape(1); ++j)
      for (std::size_t k = 0; k < a.shape(1); ++k) product(i, j) += a(i, k) * b(k, j);
  return product;
}
/// Gaussian elimination with the largest pivots.
Doubles solution(Doubles a, Doubles b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    for (std::size_t j = 0; j < n; ++j) std::swap(a(k, j), a(pivot, j));
    std::swap(b(k), b(pivot));
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a(i, k) / a(k, k);
      for (std::size_t j = k; j < n; ++j) a(i, j) -= factor * a(k, j);
      b(i) -= factor * b(k);
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b(k) -= a(k, j) * b(j);
    b(k) /= a(k, k);
  }
  return b;
}
Doubles general(std::size_t n) {
  return numbers({n, n}, 7) + 2.0 * xt::eye<double>(n);
}
Doubles definite(std::size_t n) {
  const Doubles root = general(n);
  return times(root, xt::transpose(root)) + 0.5 * xt::eye<double>(n);
}

LinearSolveOptions exact(bool positive_definite) {
  LinearSolveOptions options;
  options.positive_definite = positive_definite;
  options.rtol = 1e-13;
  options.restart = 50;
  return options;
}
/// The solution of a x = b, or of (a + aᵀ) / 2 x = b, which keeps its derivatives symmetric.
Var solved(const Var& a, const Var& b, bool positive_definite) {
  const Var used = positive_definite ? 0.5 * (a + transpose(a)) : a;
  return linear_solve([&](const Var& v) { return matmul(used, v); }, b, exact(positive_definite));
}
double largest_difference(const Doubles& a, const Doubles& b) {
  return xt::amax(xt::abs(a - b))();
}
}  // namespace

TEST_CASE("linear_solve: conjugate gradients and GMRES against elimination") {
  for (const bool positive_definite : {false, true})
    for (const std::size_t n : {1, 2, 5, 40}) {
      CAPTURE(n);
      const Doubles matrix = positive_definite ? definite(n) : general(n), right = numbers({n}, 3);
      Tape tape;
      const auto size = static_cast<std::int64_t>(n);
      const Var a = tape.input("a", {size, size}, Dtype::float64), b = tape.input("b", {size}, Dtype::float64);
      const Var x = solved(a, b, positive_definite);
      CHECK(largest_difference(evaluate(x, {{a, matrix}, {b, right}}).to<double>(), solution(matrix, right)) < 1e-9);
    }
}

TEST_CASE("linear_solve: matrices that other iterations fail on: skew, a cyclic shift, restarted") {
  Tape tape;
  const Var b = tape.input("b", {6}, Dtype::float64);
  const Doubles right = numbers({6}, 3);
  const auto play = [&](const Var& x) { return evaluate(x, {{b, right}}).to<double>(); };
  const Var turned = linear_solve(
      [](const Var& v) {
        const Vars halves = split(v, 2);
        return concat({-2.0 * halves[1], 2.0 * halves[0]});
      },
      b, exact(false));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(play(turned)(i) == doctest::Approx(right(i + 3) / 2));
    CHECK(play(turned)(i + 3) == doctest::Approx(-right(i) / 2));
  }
  const Var shifted = linear_solve(
      [](const Var& v) {
        return concat({slice(v, {1}, {6}), slice(v, {0}, {1})});
      },
      b, exact(false));
  for (std::size_t i = 0; i < 6; ++i) CHECK(play(shifted)((i + 1) % 6) == doctest::Approx(right(i)));

  LinearSolveOptions restarted = exact(false);
  restarted.restart = 3;
  restarted.max_steps = 500;
  const Doubles matrix = numbers({6, 6}, 7) + 3.0 * xt::eye<double>(6);
  const Var a = tape.input("a", {6, 6}, Dtype::float64);
  const Var x = linear_solve([&](const Var& v) { return matmul(a, v); }, b, restarted);
  CHECK(largest_difference(evaluate(x, {{a, matrix}, {b, right}}).to<double>(), solution(matrix, right)) < 1e-9);
}

TEST_CASE("linear_solve: derivatives by the right-hand side and by what the product uses, of both orders and modes") {
  for (const bool positive_definite : {false, true}) {
    const auto function = [&](const Vars& inputs) {
      return Vars{sum(square(solved(inputs[0], inputs[1], positive_definite)) * inputs[2])};
    };
    const Doubles matrix = positive_definite ? definite(4) : general(4);
    Tape tape;
    const Var a = tape.input("a", {4, 4}, Dtype::float64), b = tape.input("b", {4}, Dtype::float64),
              c = tape.input("c", {4}, Dtype::float64);
    const Doubles right = numbers({4}, 3), weights = numbers({4}, 5);
    const Var y = function({a, b, c})[0];
    const auto at = [&](const Var& var, const Doubles& m, const Doubles& r) {
      return evaluate(var, {{a, m}, {b, r}, {c, weights}}).to<double>();
    };
    const auto value = [&](const Doubles& m, const Doubles& r) {
      const Doubles used = positive_definite ? Doubles(0.5 * (m + xt::transpose(m))) : m;
      return xt::sum(xt::square(solution(used, r)) * weights)();
    };
    const Vars slopes = grad(y, {a, b});
    const Doubles by_a = at(slopes[0], matrix, right), by_b = at(slopes[1], matrix, right);
    const Doubles along = numbers({4, 4}, 11), beside = numbers({4}, 13);
    const double h = 1e-5;
    const double expected =
        (value(matrix + h * along, right + h * beside) - value(matrix - h * along, right - h * beside)) / (2 * h);
    CHECK(xt::sum(by_a * along)() + xt::sum(by_b * beside)() == doctest::Approx(expected).epsilon(1e-6));

    const Var da = tape.constant(Array(ArrayView(along))), db = tape.constant(Array(ArrayView(beside)));
    CHECK(at(jvp({y}, {a, b}, {da, db})[0], matrix, right)() == doctest::Approx(expected).epsilon(1e-6));
    // The change of the gradient along the same direction, in both modes.
    const Vars forward = jvp(slopes, {a, b}, {da, db});
    const Vars reverse = grad(sum(slopes[0] * da) + sum(slopes[1] * db), {a, b});
    for (std::size_t i = 0; i < 2; ++i) {
      const Doubles change = (at(slopes[i], matrix + h * along, right + h * beside) -
                              at(slopes[i], matrix - h * along, right - h * beside)) /
                             (2 * h);
      const double size = xt::amax(xt::abs(change))();
      CHECK(largest_difference(at(forward[i], matrix, right), change) < 1e-6 * size);
      CHECK(largest_difference(at(reverse[i], matrix, right), change) < 1e-6 * size);
    }
  }
}

TEST_CASE("linear_solve: under vmap each example is solved to its own tolerance, and has its own gradient") {
  for (const bool positive_definite : {false, true}) {
    Tape tape;
    const Var a = tape.input("a", {3, 4, 4}, Dtype::float64), b = tape.input("b", {4, 3}, Dtype::float64);
    VmapOptions axes;
    axes.in_axes = {0, 1};
    const auto each = [&](const Vars& inputs) {
      const Var x = solved(inputs[0], inputs[1], positive_definite);
      return Vars{x, grad(sum(square(x)), {inputs[1]})[0]};
    };
    const Vars found = vmap(each, {a, b}, axes);
    const Var outside = grad(sum(square(found[0])), {b})[0];
    Doubles matrices = Doubles::from_shape({3, 4, 4}), rights = numbers({4, 3}, 3);
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j)
          matrices(k, i, j) =
              (positive_definite ? definite(4) : general(4))(i, j) * std::pow(100.0, k) + (i == j ? k : 0);
    for (std::size_t j = 0; j < 3; ++j) rights(0, j) *= std::pow(1e-4, j);
    const auto play = [&](const Var& var) { return evaluate(var, {{a, matrices}, {b, rights}}).to<double>(); };
    for (std::size_t k = 0; k < 3; ++k) {
      Doubles matrix = Doubles::from_shape({4, 4}), right = Doubles::from_shape({4});
      for (std::size_t i = 0; i < 4; ++i) {
        right(i) = rights(i, k);
        for (std::size_t j = 0; j < 4; ++j) matrix(i, j) = matrices(k, i, j);
      }
      const Doubles x = solution(matrix, right), slope = solution(xt::transpose(matrix), 2 * x);
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(play(found[0])(k, i) == doctest::Approx(x(i)));
        CHECK(play(found[1])(k, i) == doctest::Approx(slope(i)));
        CHECK(play(outside)(i, k) == doctest::Approx(slope(i)));
      }
    }
  }
}

TEST_CASE("linear_solve: several arrays, float32, no elements, zeros") {
  Tape tape;
  const Var b = tape.input("b", {2, 3}), c = tape.input("c", {});
  // [2 x + y, x / 3 + 4 y] with y added to every element.
  const auto product = [](const Vars& v) { return Vars{2 * v[0] + v[1], sum(v[0]) / 3 + 4 * v[1]}; };
  const Vars x = linear_solve(product, {b, c});
  const xt::xarray<float> right{{1, 2, 3}, {4, 5, 6}};
  Player player(tape, x);
  player.play({{b, right}, {c, xt::xarray<float>(2)}});
  const auto first = player.value<float>(x[0]), last = player.value<float>(x[1]);
  for (std::size_t i = 0; i < 6; ++i) CHECK(2 * first.flat(i) + last() == doctest::Approx(right.flat(i)).epsilon(1e-5));
  CHECK(xt::sum(first)() / 3 + 4 * last() == doctest::Approx(2).epsilon(1e-5));

  const auto twice = [](const Var& v) { return 2 * v; };
  CHECK(evaluate(linear_solve(twice, zeros(tape, {3})), {}).to<float>() == xt::xarray<float>(xt::zeros<float>({3})));
  CHECK(evaluate(linear_solve(twice, zeros(tape, {0})), {}).shape() == Shape{0});
}

TEST_CASE("linear_solve: NaN says that a system is not solved") {
  Tape tape;
  const Var b = tape.input("b", {3}, Dtype::float64);
  const auto singular = [](const Var& v) { return v * 0; };
  const auto unsolved = [&](const Var& x, const Doubles& right) {
    for (const double each : evaluate(x, {{b, right}}).to<double>())
      if (!std::isnan(each)) return false;
    return true;
  };
  const Doubles ones{1, 1, 1}, bad{1, NAN, 1};
  CHECK(unsolved(linear_solve(singular, b), ones));
  CHECK(unsolved(linear_solve([](const Var& v) { return 3 * v; }, b), bad));
  CHECK(unsolved(linear_solve([](const Var& v) { return 2 * v + 1; }, b), ones));  // not linear
  CHECK(unsolved(linear_solve([](const Var& v) { return v * v; }, b), ones));
  LinearSolveOptions brief;
  brief.max_steps = 1;
  brief.positive_definite = true;
  const auto scaled = [](const Var& v) { return v * (iota(v.tape(), {3}) + 1); };
  CHECK(unsolved(linear_solve(scaled, b, brief), ones));
  brief.rtol = 0.9;
  CHECK(!unsolved(linear_solve(scaled, b, brief), ones));
}

TEST_CASE("linear_solve: mistakes are errors, and leave the tape as it was") {
  Tape tape, other;
  const Var b = tape.input("b", {3}), whole = tape.input("n", {3}, Dtype::int64), far = other.input("b", {3}),
            wide = tape.input("w", {3}, Dtype::float64);
  const std::size_t size = tape.size();
  const auto same = [](const Vars& v) { return v; };
  using Product = std::function<Vars(const Vars&)>;
  CHECK_THROWS_AS(linear_solve(Product(), {b}), Error);
  CHECK_THROWS_AS(linear_solve(std::function<Var(const Var&)>(), b), Error);
  CHECK_THROWS_AS(linear_solve(same, Vars{}), Error);
  CHECK_THROWS_AS(linear_solve(same, {b, far}), HandleError);
  CHECK_THROWS_AS(linear_solve(same, {whole}), DtypeError);
  CHECK_THROWS_WITH_AS(linear_solve(same, {b, wide}), doctest::Contains("one float dtype"), DtypeError);
  CHECK_THROWS_WITH_AS(linear_solve([](const Var& v) { return sum(v); }, b), doctest::Contains("got float32 ()"),
                       ShapeError);
  CHECK_THROWS_AS(linear_solve([&](const Var&) { return far; }, b), HandleError);
  LinearSolveOptions wrong;
  wrong.rtol = -1;
  CHECK_THROWS_WITH_AS(linear_solve(same, {b}, wrong), doctest::Contains("must not be negative"), Error);
  wrong.rtol = NAN;
  CHECK_THROWS_AS(linear_solve(same, {b}, wrong), Error);
  wrong = {};
  wrong.max_steps = -1;
  CHECK_THROWS_AS(linear_solve(same, {b}, wrong), Error);
  wrong = {};
  wrong.restart = 0;
  CHECK_THROWS_AS(linear_solve(same, {b}, wrong), Error);
  CHECK(tape.size() == size);
  CHECK_THROWS_WITH_AS(linear_solve([](const Var& v) { return v + dropout(v, 0.5); }, b),
                       doctest::Contains("draws random numbers"), Error);
}

TEST_CASE("linear_solve: right-hand sides of any size") {
  Tape tape;
  const Var b = tape.input("b", {3});
  const Var x = linear_solve([](const Var& v) { return (iota(v.tape(), {3}) + 1) * v; }, b);
  for (const float size : {1e-30f, 1e-23f, 1.0f, 1e25f, 1e36f}) {
    const xt::xarray<float> right{size, -2 * size, 0.5f * size};
    const auto found = evaluate(x, {{b, right}}).to<float>();
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(found(i) == doctest::Approx(right(i) / static_cast<float>(i + 1)).epsilon(1e-5).scale(0));
  }
}

TEST_CASE("linear_solve: gradients through products that contain checkpoints, loops and branches") {
  Tape tape;
  const Var b = tape.input("b", {2}, Dtype::float64), w = tape.input("w", {2}, Dtype::float64);
  const Doubles right{3.0, -1.0}, weights{2.0, 4.0};
  const auto kept = [&](const Var& v) {
    return checkpoint([&](const Vars& each) { return Vars{each[0] * w}; }, {v})[0];
  };
  const auto looped = [&](const Var& v) {  // 4 w v
    const auto goes_on = [](const Vars& states) { return states[1] < 2; };
    const auto twice = [](const Vars& states) { return Vars{2 * states[0], states[1] + 1}; };
    return while_loop(goes_on, twice, {v * w, zeros(tape, {}, Dtype::int64)}, 5).states[0];
  };
  const auto chosen = [&](const Var& v) {
    return cond(
        sum(w) > 0, [&](const Vars& each) { return Vars{each[0] * w}; }, [](const Vars& each) { return each; }, {v})[0];
  };
  const std::vector<std::function<Var(const Var&)>> products{kept, looped, chosen};
  for (std::size_t k = 0; k < 3; ++k) {
    const double factor = k == 1 ? 4 : 1;
    const Var x = linear_solve(products[k], b, exact(false));
    const Vars slopes = grad(sum(x), {b, w});
    for (std::size_t i = 0; i < 2; ++i) {
      const auto play = [&](const Var& var) { return evaluate(var, {{b, right}, {w, weights}}).to<double>()(i); };
      CHECK(play(x) == doctest::Approx(right(i) / (factor * weights(i))));
      CHECK(play(slopes[0]) == doctest::Approx(1 / (factor * weights(i))));
      CHECK(play(slopes[1]) == doctest::Approx(-right(i) / (factor * weights(i) * weights(i))));
    }
  }
}
