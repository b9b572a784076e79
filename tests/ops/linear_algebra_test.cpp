// The ops that are recorded as factorisations, products and sums.
#include "xtape/ops/linear_algebra.hpp"

#include <doctest/doctest.h>

#include "golden.hpp"
#include "indexed.hpp"
#include "matrices.hpp"
#include "played.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

using namespace xtape;
using namespace xtape::tests;

namespace {
constexpr const char* golden = "ops_linear_algebra.json";
Doubles played_loosely(const std::function<Var(const Vars&)>& record, const std::vector<Doubles>& points) {
  return played([&](const Vars& x) { return Vars{record(x)}; }, points, 1e-11, 1e-3)[0];
}

/// The determinant by expansion along the first row.
double naive_det(const Doubles& a) {
  const std::size_t n = a.shape()[0];
  double sum = n == 0 ? 1 : 0;
  for (std::size_t j = 0; j < n; ++j) {
    const auto minor =
        made_from({static_cast<std::int64_t>(n) - 1, static_cast<std::int64_t>(n) - 1}, [&](const Shape& i) {
          return element(a, {i[0] + 1, i[1] + (i[1] >= static_cast<std::int64_t>(j))});
        });
    sum += (j % 2 == 0 ? 1 : -1) * a(0, j) * naive_det(minor);
  }
  return sum;
}
/// The derivative of the determinant by element `at`. The determinant is linear in each element.
Doubles naive_cofactors(const Doubles& a) {
  return made_from(shape_of(a), [&](const Shape& at) {
    Doubles with = a, without = a;
    with(at[0], at[1]) = 1;
    without(at[0], at[1]) = 0;
    return naive_det(with) - naive_det(without);
  });
}
/// The derivative of the cofactors in the direction w, which is exact for polynomials of degree 4.
Doubles naive_derivative(const Doubles& a, const Doubles& w) {
  const auto difference = [&](double h) {
    return Doubles((naive_cofactors(a + h * w) - naive_cofactors(a - h * w)) / (2 * h));
  };
  return (4 * difference(0.5) - difference(1)) / 3;
}
/// Matrices of all ranks, of which most are singular.
std::vector<Doubles> matrices_of_all_ranks() {
  std::vector<Doubles> all{xt::zeros<double>({1, 1}), 2.5 * xt::ones<double>({1, 1}), xt::ones<double>({2, 2}),
                           xt::ones<double>({3, 3}), xt::eye<double>(4)};
  for (const std::size_t n : {2, 3}) all.push_back(xt::zeros<double>({n, n}));
  all.push_back(xt::xarray<double>{{0, 1}, {0, 0}});
  all.push_back(xt::xarray<double>{{0, 0, 0}, {0, 0, 2}, {0, 0, 0}});
  all.push_back(xt::xarray<double>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  for (std::int64_t n = 2; n < 6; ++n)
    for (std::int64_t rank = 1; rank <= n; ++rank)
      all.push_back(
          product(numbers({n, rank}, static_cast<unsigned>(n)), numbers({rank, n}, static_cast<unsigned>(rank))));
  return all;
}
Var weighted_gradient(const Var& y, const Var& x, const Doubles& w) {
  return sum(grad(sum(y), {x})[0] * x.tape().constant(w));
}
}  // namespace

TEST_CASE("op solve: A X = B, batches broadcast, vectors, singular matrices, gradients") {
  check_golden(golden, "solve", 1e-10, 1e-3);
  const auto record = [](const Vars& x) { return linalg::solve(x[0], x[1]); };
  const Doubles a = positive({2, 3, 3}), b = numbers({2, 3, 2});
  CHECK(near(product(a, played_loosely(record, {a, b})), b, 1e-11));
  const Doubles vector = played_loosely(record, {positive({3, 3}), numbers({3})});
  const Doubles column =
      product(positive({3, 3}), made_from({3, 1}, [&](const Shape& i) { return element(vector, {i[0]}); }));
  CHECK(near(column, numbers({3, 1}), 1e-11));
  CHECK(shape_of(played_loosely(record, {positive({4, 1, 3, 3}), b})) == Shape{4, 2, 3, 2});
  CHECK(shape_of(played_loosely(record, {a, numbers({3})})) == Shape{2, 3});
  CHECK(played_loosely(record, {positive({0, 0}), numbers({0, 2})}).size() == 0);
  check_gradient(record, {a, b});
  check_gradient(record, {positive({3, 3}), b});
  check_gradient(record, {positive({2, 1, 2, 2}), numbers({2, 1})});
  check_gradient(record, {positive({2, 2}), numbers({2})});
  const std::string error =
      message_of([](const Vars& x) { return linalg::solve(x[0], x[0]); }, xt::zeros<double>({2, 2}));
  CHECK(error.find("linear_algebra_test.cpp, line") != std::string::npos);
  CHECK(error.find("solve: the matrix is singular") != std::string::npos);
  CHECK(message_of([](const Vars& x) { return linalg::solve(x[0], x[0], false); }, xt::zeros<double>({2, 2})).empty());
  Tape tape;
  CHECK_THROWS_AS(linalg::solve(tape.input("a", {2, 3}), tape.input("b", {2})), ShapeError);
  const Var c = tape.input("c", {2, 2}), d = tape.input("d", {3});
  CHECK_THROWS_WITH_AS(linalg::solve(c, d),
                       "solve: b must be a vector or matrices with 2 rows, as a has, got (2, 2) and (3,)", ShapeError);
  CHECK(tape.size() == 4);
  CHECK_THROWS_WITH_AS(linalg::lstsq(c, linalg::trace(c)),
                       "lstsq: b must be a vector or matrices with 2 rows, as a has, got (2, 2) and ()", ShapeError);
}

TEST_CASE("op inv: A times its inverse is the identity") {
  check_golden(golden, "inv", 1e-10, 1e-3);
  const auto record = [](const Vars& x) { return linalg::inv(x[0]); };
  const Doubles a = positive({2, 3, 3}), all = product(a, played_loosely(record, {a}));
  for_each_index({2, 3, 3}, [&](const Shape& i) { CHECK(std::abs(element(all, i) - (i[1] == i[2])) < 1e-12); });
  check_gradient(record, {positive({2, 2, 2})});
}

TEST_CASE("op det: sums over permutations, also of singular and empty matrices") {
  check_golden(golden, "det", 1e-10, 1e-3);
  const auto record = [](const Vars& x) { return linalg::det(x[0]); };
  const Doubles a = numbers({3, 2, 2}, 4);
  const Doubles found = played_loosely(record, {a});
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(found(i) == doctest::Approx(a(i, 0, 0) * a(i, 1, 1) - a(i, 0, 1) * a(i, 1, 0)).epsilon(1e-12));
  CHECK(played_loosely(record, {xt::ones<double>({2, 2})})() == 0);
  CHECK(played_loosely(record, {xt::ones<double>({0, 0})})() == 1);
  check_gradient(record, {numbers({2, 3, 3}, 4)});
}

TEST_CASE("op det_grad: the cofactors of matrices of all ranks, batches, NaN") {
  for (const Doubles& a : matrices_of_all_ranks()) {
    CAPTURE(a);
    Tape tape;
    const Var x = tape.parameter("x", a);
    CHECK(near(value<double>(grad(linalg::det(x), {x})[0]), naive_cofactors(a), 1e-13));
    const Var narrow = cast(x, Dtype::float32);
    CHECK(near(value<double>(cast(grad(linalg::det(narrow), {narrow})[0], Dtype::float64)), naive_cofactors(a), 1e-5));
  }
  const auto record = [](const Vars& x) { return apply(builtin_ops().at("det_grad"), {x[0]})[0]; };
  const Doubles a = played_loosely(record, {numbers({2, 1, 3, 3}, 4)});
  CHECK(shape_of(a) == Shape{2, 1, 3, 3});
  CHECK(played_loosely(record, {xt::ones<double>({0, 0})}).size() == 0);
  CHECK(played_loosely(record, {xt::ones<double>({2, 0, 0})}).size() == 0);
  CHECK(played_loosely(record, {xt::ones<double>({0, 2, 2})}).size() == 0);
  check_vmap(record, {numbers({3, 2, 2}, 4)});
  check_gradient(record, {numbers({2, 3, 3}, 4)});
  // A batch of a singular, a regular and a broken matrix.
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{{{1, 2}, {2, 4}}, {{1, 2}, {3, 4}}, {{1, 2}, {HUGE_VAL, 4}}});
  const double nan = std::nan("");
  const auto found = value<double>(grad(sum(linalg::det(x)), {x})[0]);
  CHECK(near(found, xt::xarray<double>{{{4, -2}, {-2, 1}}, {{4, -3}, {-2, 1}}, {{nan, nan}, {nan, nan}}}, 1e-15));
  // Of 40 rows, all are independent, or one or two are not. The factors of lu serve for the first matrix alone.
  std::vector<double> largest;
  for (int copies : {0, 1, 2}) {
    xt::xarray<double> rows = numbers({40, 40}, 6);
    for (int i = 0; i < copies; ++i)
      for (int j = 0; j < 40; ++j) rows(i, j) = rows(39 - i, j);
    const Var many = tape.parameter("rows" + std::to_string(copies), rows);
    const auto slopes = value<double>(grad(linalg::det(many), {many})[0]);
    largest.push_back(xt::amax(xt::abs(slopes))());
    // The first row of the cofactors is orthogonal to all other rows of the matrix.
    for (int i = 1; i < 40; ++i) {
      double product = 0;
      for (int j = 0; j < 40; ++j) product += slopes(0, j) * rows(i, j);
      CHECK(std::abs(product) <= 1e-11 * largest[0]);
    }
  }
  CHECK(largest[1] > 1e-3 * largest[0]);
  CHECK(largest[2] < 1e-12 * largest[0]);
  // Products of two pivots overflow and underflow, but the cofactors do not.
  const xt::xarray<double> diagonal{1e200, 1e-200, 1e200, 1e-200};
  const Var wide = tape.parameter("wide", xt::xarray<double>(diagonal * xt::eye<double>(4)));
  const auto cofactors = value<double>(grad(linalg::det(wide), {wide})[0]);
  for (std::size_t i = 0; i < 4; ++i) CHECK(cofactors(i, i) * diagonal(i) == doctest::Approx(1));
}

TEST_CASE("op det_grad_grad: second derivatives of matrices of all ranks, third ones of regular matrices") {
  for (const Doubles& a : matrices_of_all_ranks()) {
    CAPTURE(a);
    Tape tape;
    const Doubles w = numbers(shape_of(a), 9), v = numbers(shape_of(a), 10);
    const Var x = tape.parameter("x", a), y = linalg::det(x);
    const Doubles wanted = naive_derivative(a, w);
    CHECK(near(value<double>(grad(weighted_gradient(y, x, w), {x})[0]), wanted, 1e-12));
    // Forward over reverse: the product of v and the result.
    const Var tangent = jvp({weighted_gradient(y, x, w)}, {x}, {tape.constant(v)})[0];
    CHECK(value<double>(tangent)() == doctest::Approx(xt::sum(wanted * v)()).epsilon(1e-11));
  }
  const auto record = [](const Vars& x) { return apply(builtin_ops().at("det_grad_grad"), {x[0], x[1]})[0]; };
  check_gradient(record, {numbers({2, 3, 3}, 4), numbers({2, 3, 3}, 5)});
  check_gradient(record, {numbers({4, 4}, 4), numbers({4, 4}, 5)});
  check_vmap(record, {numbers({3, 2, 2}, 4), numbers({3, 2, 2}, 5)});
  CHECK(played_loosely(record, {xt::ones<double>({0, 0}), xt::ones<double>({0, 0})}).size() == 0);
  Tape tape;
  CHECK_THROWS_WITH_AS(apply(builtin_ops().at("det_grad_grad"), {tape.input("a", {2, 2}), tape.input("dy", {2, 3})}),
                       "det_grad_grad: 'dy' must have the shape of a (2, 2), got (2, 3)", ShapeError);
}

TEST_CASE("op slogdet: no overflow; 0 and -inf for singular matrices") {
  check_golden(golden, "slogdet", 1e-10, 1e-3);
  const auto record = [](const Vars& x) {
    const linalg::SignLogDet f = linalg::slogdet(x[0]);
    return Vars{f.sign, f.logabsdet};
  };
  Doubles large = -1e30 * xt::eye<double>(21);
  auto found = played(record, {large}, 1e-12, 1e-4);
  CHECK(found[0]() == -1);
  CHECK(found[1]() == doctest::Approx(21 * std::log(1e30)));
  found = played(record, {xt::zeros<double>({2, 2})}, 1e-12, 1e-4);
  CHECK(found[0]() == 0);
  CHECK(found[1]() == -HUGE_VAL);
  check_gradients(record, {numbers({2, 3, 3}, 4)});
  // Factors that overflow to NaN do not make the matrix singular.
  const Doubles vast{{1, 1e308, 1e308}, {-1, 1e308, 1e308}, {-1, 1e308, 0.5e308}};
  const auto overflown = played_with(record, {vast}, Dtype::float64, {});
  CHECK(std::isnan(overflown[0]()));
  CHECK(std::isnan(overflown[1]()));
}

TEST_CASE("op cholesky_solve: solves with the factor") {
  check_golden(golden, "cholesky_solve", 1e-10, 1e-3);
  const auto record = [](const Vars& x) { return linalg::cholesky_solve(linalg::cholesky(x[0]), x[1]); };
  const Doubles a = positive({2, 3, 3}), b = numbers({2, 3, 2});
  CHECK(near(product(a, played_loosely(record, {a, b})), b, 1e-12));
  check_gradient(record, {a, b});
}

TEST_CASE("op lstsq: residuals are orthogonal to the columns") {
  check_golden(golden, "lstsq", 1e-10, 1e-2);
  const auto record = [](const Vars& x) { return linalg::lstsq(x[0], x[1]); };
  const Doubles a = numbers({5, 2}), b = numbers({5, 1}, 3);
  const Doubles residual = b - product(a, played_loosely(record, {a, b}));
  CHECK(near(product(Doubles(xt::transpose(a)), residual), xt::zeros<double>({2, 1}), 1e-12));
  CHECK(shape_of(played_loosely(record, {a, numbers({5})})) == Shape{2});
  check_gradient(record, {numbers({2, 4, 2}, 6), numbers({2, 4, 1})});
}

TEST_CASE("op matrix_rank: counts singular values") {
  check_golden(golden, "matrix_rank");
  const auto record = [](const Vars& x) { return linalg::matrix_rank(x[0]); };
  const Doubles low = product(numbers({4, 2}, 1), numbers({2, 3}, 2));
  CHECK(played_one(record, {low})() == 2);
  CHECK(played_one(record, {xt::zeros<double>({2, 3})})() == 0);
  CHECK(played_one(record, {xt::zeros<double>({0, 3})})() == 0);
  CHECK(played_one([](const Vars& x) { return linalg::matrix_rank(x[0], 0.5); }, {positive({1, 1})})() == 1);
}

TEST_CASE("op matrix_norm: all norms, gradients, 0, unknown names") {
  check_golden(golden, "matrix_norm", 1e-10, 1e-3);
  const Doubles a = numbers({2, 2, 3}, 9);
  const Doubles found = played_one([](const Vars& x) { return linalg::matrix_norm(x[0], "inf"); }, {a});
  for (std::size_t i = 0; i < 2; ++i) {
    const auto row = [&](std::size_t r) { return std::abs(a(i, r, 0)) + std::abs(a(i, r, 1)) + std::abs(a(i, r, 2)); };
    CHECK(found(i) == doctest::Approx(std::max(row(0), row(1))));
  }
  for (const char* ord : {"fro", "nuc", "1", "2", "inf"})
    check_gradient([&](const Vars& x) { return linalg::matrix_norm(x[0], ord); }, {a});
  Tape tape;
  const Var none = tape.constant(ArrayView(Doubles(xt::zeros<double>({2, 2}))));
  CHECK(as_doubles(evaluate(grad(linalg::matrix_norm(none), {none})[0])) == xt::zeros<double>({2, 2}));
  CHECK_THROWS_WITH_AS(linalg::matrix_norm(none, "frob"),
                       "matrix_norm: ord must be 'fro', 'nuc', '1', '2' or 'inf', got 'frob'", Error);
}

TEST_CASE("op matrix_power: products, the identity, inverses") {
  check_golden(golden, "matrix_power", 1e-9, 1e-2);
  const Doubles a = numbers({2, 3, 3}, 3);
  const auto power = [](std::int64_t n) { return [n](const Vars& x) { return linalg::matrix_power(x[0], n); }; };
  Doubles all = a;
  for (std::int64_t n = 1; n < 8; ++n, all = product(all, a)) CHECK(near(played_one(power(n), {a}), all, 1e-12));
  CHECK(near(product(played_loosely(power(-2), {positive({3, 3})}), played_loosely(power(2), {positive({3, 3})})),
             xt::eye<double>(3), 1e-11));
  check_gradient(power(3), {a});
}

TEST_CASE("op trace: of square and other matrices") {
  check_golden(golden, "trace", 1e-10);
  const auto record = [](const Vars& x) { return linalg::trace(x[0]); };
  const Doubles a = numbers({2, 3}, 1);
  CHECK(played_one(record, {a})() == doctest::Approx(a(0, 0) + a(1, 1)));
  CHECK(played_one(record, {numbers({0, 3})})() == 0);
  check_gradient(record, {numbers({2, 3, 2})});
}

TEST_CASE("op outer: all products of two vectors") {
  check_golden(golden, "outer", 1e-10);
  check_gradient([](const Vars& x) { return linalg::outer(x[0], x[1]); }, {numbers({2, 3}), numbers({2, 2}, 1)});
}

TEST_CASE("op kron: blocks that are multiples of the second matrix") {
  check_golden(golden, "kron", 1e-10);
  const Doubles a = numbers({2, 3}), b = numbers({4, 2}, 1);
  CHECK(near(played_one([](const Vars& x) { return linalg::kron(x[0], x[1]); }, {a, b}),
             made_from({8, 6},
                       [&](const Shape& i) {
                         return element(a, {i[0] / 4, i[1] / 2}) * element(b, {i[0] % 4, i[1] % 2});
                       }),
             1e-12));
  check_gradient([](const Vars& x) { return linalg::kron(x[0], x[1]); }, {numbers({2, 1, 2, 2}), numbers({2, 1}, 1)});
}
