// cholesky, triangular_solve, lu and lu_solve.
#include <doctest/doctest.h>

#include <limits>

#include "golden.hpp"
#include "matrices.hpp"
#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/linear_algebra.hpp"

using namespace xtape;
using namespace xtape::tests;

TEST_CASE("op cholesky: L times its transpose is A, for batches, sizes of 0 and 1, and views") {
  check_golden("ops_linear_algebra.json", "cholesky", 1e-10, 1e-3);
  for (const Shape& shape :
       {Shape{3, 3}, Shape{2, 3, 4, 4}, Shape{1, 1}, Shape{0, 0}, Shape{2, 0, 0}, Shape{0, 3, 3}}) {
    const Doubles a = positive(shape);
    const auto l = played([](const Vars& x) { return Vars{linalg::cholesky(x[0])}; }, {a}, 1e-12, 1e-4)[0];
    CHECK(near(product(l, l, true), a, 1e-12));
    for_each_index(shape, [&](const Shape& i) {
      if (i.back() > i[i.size() - 2]) CHECK(element(l, i) == 0);
    });
  }
  // A view, and a matrix that is not symmetric, which stands for its mean with the transpose.
  const Doubles skewed = positive({4, 4}) + numbers({4, 4}, 3) - xt::transpose(numbers({4, 4}, 3));
  const auto of_view = [](const Vars& x) { return Vars{linalg::cholesky(transpose(x[0]))}; };
  CHECK(near(played(of_view, {skewed}, 1e-12, 1e-4)[0],
             played([](const Vars& x) { return Vars{linalg::cholesky(x[0])}; }, {positive({4, 4})}, 1e-12, 1e-4)[0],
             1e-12));
}

TEST_CASE("op cholesky: gradients, for any perturbation") {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 2, 2}})
    check_gradient([](const Vars& x) { return linalg::cholesky(x[0]); }, {positive(shape)});
}

TEST_CASE("op cholesky: errors name the line and the matrix; without check, and for NaN, the result is NaN") {
  Doubles a = positive({2, 3, 2, 2});
  a(1, 0, 1, 1) = -1;
  a(1, 2, 1, 1) = -1;
  const std::string error = message_of([](const Vars& x) { return linalg::cholesky(x[0]); }, a);
  CHECK(error.find("factorisations_test.cpp, line") != std::string::npos);
  CHECK(error.find("cholesky: matrix (1, 0) of the batch (2, 3) is not positive definite") != std::string::npos);
  const auto l = played([](const Vars& x) { return Vars{linalg::cholesky(x[0], false)}; }, {a}, 1e-12, 1e-4)[0];
  for_each_index({2, 3}, [&](const Shape& i) {
    CHECK(std::isnan(element(l, {i[0], i[1], 1, 1})) == (i[0] == 1 && i[1] != 1));
  });
  for (const double odd : {std::nan(""), HUGE_VAL}) {
    Doubles b = positive({2, 3, 3});
    b(0, 0, 2) = odd;
    const auto found = played([](const Vars& x) { return Vars{linalg::cholesky(x[0])}; }, {b}, 1e-12, 1e-4)[0];
    CHECK(std::isnan(found(0, 2, 0)));
    CHECK(found(1, 2, 2) > 0);
  }
  Tape tape;
  CHECK_THROWS_WITH_AS(linalg::cholesky(tape.input("x", {2, 3})),
                       "cholesky: a must be square matrices [..., n, n], got (2, 3)", ShapeError);
  CHECK(tape.size() == 1);
  CHECK_THROWS_AS(linalg::cholesky(tape.input("y", {3})), ShapeError);
}

TEST_CASE("op cholesky: symmetric matrices are taken as they are, even the smallest numbers") {
  const double least = std::numeric_limits<double>::denorm_min();
  Tape tape;
  const Var l = linalg::cholesky(tape.constant(ArrayView(Doubles(least * xt::eye<double>(2)))));
  CHECK(as_doubles(evaluate(l))(1, 1) == doctest::Approx(std::sqrt(least)).epsilon(1e-12).scale(0));
}

TEST_CASE("factorisations: any number of empty matrices takes no time") {
  Tape tape;
  const Var a = tape.input("a", {std::int64_t{1} << 40, 0, 0});
  const Vars all{linalg::cholesky(a), linalg::triangular_solve(a, a), linalg::qr(a).r, linalg::eigh(a).eigenvectors,
                 linalg::svd(a).u};
  Player player(tape, all);
  player.play({{a, Array(Dtype::float32, a.shape())}}, 0);
  for (const Var& each : all) CHECK(player.view(each).shape() == a.shape());
}

TEST_CASE("op triangular_solve: solves all forms, with a batch or one matrix for all, and many columns") {
  check_golden("ops_linear_algebra.json", "triangular_solve", 1e-10, 1e-3);
  for (const bool upper : {false, true})
    for (const bool transposed : {false, true})
      for (const bool unit : {false, true})
        for (const std::int64_t batch : {0, 3}) {
          CAPTURE(upper);
          CAPTURE(transposed);
          CAPTURE(unit);
          CAPTURE(batch);
          const Shape shape = batch == 0 ? Shape{3, 3} : Shape{batch, 3, 3};
          const Doubles a = positive(shape), b = numbers({3, 3, 2}, 5);
          const auto record = [&](const Vars& x) {
            return linalg::triangular_solve(x[0], x[1], {upper, transposed, unit, true});
          };
          const auto x = played([&](const Vars& v) { return Vars{record(v)}; }, {a, b}, 1e-12, 1e-4)[0];
          const auto triangle = made_from(shape, [&](const Shape& i) {
            const std::int64_t row = i[i.size() - 2], column = i.back();
            return row == column ? unit ? 1.0 : element(a, i) : (row < column) == upper ? element(a, i) : 0.0;
          });
          for_each_index({3, 3, 2}, [&](const Shape& at) {
            double sum = 0;
            for (std::int64_t k = 0; k < 3; ++k) {
              Shape index = batch == 0 ? Shape{} : Shape{at[0]};
              index.push_back(transposed ? k : at[1]);
              index.push_back(transposed ? at[1] : k);
              sum += element(triangle, index) * element(x, {at[0], k, at[2]});
            }
            CHECK(sum == doctest::Approx(element(b, at)).epsilon(1e-12));
          });
          check_gradient(record, {a, b});
        }
  const Doubles wide = numbers({2, 2, 600});  // several tasks for a matrix
  const auto twice = [](const Vars& x) { return Vars{linalg::triangular_solve(x[0], matmul(tril(x[0]), x[1]))}; };
  CHECK(near(played(twice, {positive({2, 2, 2}), wide}, 1e-12, 1e-4)[0], wide, 1e-12));
  for (const std::int64_t n : {0, 2})
    CHECK(played_one([](const Vars& x) { return linalg::triangular_solve(x[0], x[1]); },
                     {positive({n, n}), numbers({n, 2 - n})})
              .size() == 0);
}

TEST_CASE("op triangular_solve: a singular matrix, and shapes that do not fit") {
  Doubles a = positive({2, 2, 2});
  a(1, 0, 0) = 0;
  const auto record = [](const Vars& x) { return linalg::triangular_solve(x[0], x[0]); };
  CHECK(message_of(record, a).find("triangular_solve: matrix (1,) of the batch (2,) is singular: element 0 of its "
                                   "diagonal is 0") != std::string::npos);
  const auto unchecked = [](const Vars& x) {
    return linalg::triangular_solve(x[0], x[0], {false, false, false, false});
  };
  CHECK(message_of(unchecked, a).empty());
  Tape tape;
  const Var square = tape.input("a", {2, 3, 3}), fits = tape.input("b", {2, 3, 1});
  CHECK_THROWS_WITH_AS(linalg::triangular_solve(square, tape.input("c", {3, 3, 1})),
                       "triangular_solve: b must be [..., n, k] with the n and the batch of a, got (2, 3, 3) and "
                       "(3, 3, 1)",
                       ShapeError);
  CHECK_THROWS_AS(linalg::triangular_solve(square, tape.input("d", {2, 2, 1})), ShapeError);
  CHECK_THROWS_AS(linalg::triangular_solve(fits, fits), ShapeError);
}

TEST_CASE("op lu: L U is A with permuted rows; sign; gradients") {
  check_golden("ops_linear_algebra.json", "lu", 1e-10, 1e-3);
  for (const Shape& shape : {Shape{4, 4}, Shape{2, 3, 3}, Shape{1, 1}, Shape{0, 0}, Shape{0, 2, 2}}) {
    const Doubles a = numbers(shape, 7);
    const auto record = [](const Vars& x) {
      const linalg::Lu f = linalg::lu(x[0]);
      return Vars{f.lu, f.permutation, f.sign};
    };
    const auto found = played(record, {a}, 1e-12, 1e-3);
    const std::int64_t n = shape.back();
    for_each_index(shape, [&](const Shape& i) {
      Shape at = i;
      double sum = 0;
      for (std::int64_t k = 0; k <= std::min(i[i.size() - 2], i.back()); ++k) {
        at[at.size() - 2] = i[i.size() - 2], at.back() = k;
        const double l = k == i[i.size() - 2] ? 1 : element(found[0], at);
        at[at.size() - 2] = k, at.back() = i.back();
        sum += l * element(found[0], at);
      }
      Shape row(i.begin(), i.end() - 1);
      at[at.size() - 2] = static_cast<std::int64_t>(element(found[1], row)), at.back() = i.back();
      CHECK(sum == doctest::Approx(element(a, at)).epsilon(1e-12));
    });
    if (n == 0) CHECK(found[2].size() == static_cast<std::size_t>(count_of(Shape(shape.begin(), shape.end() - 2))));
  }
  check_gradient([](const Vars& x) { return linalg::lu(x[0]).lu; }, {numbers({2, 3, 3}, 7)});
  Doubles singular = numbers({2, 2, 2});
  singular(1, 0, 0) = singular(1, 0, 1) = 0;
  CHECK(message_of([](const Vars& x) { return linalg::lu(x[0]).lu; }, singular)
            .find("lu: matrix (1,) of the batch (2,) is singular") != std::string::npos);
  const auto sign = played_one([](const Vars& x) { return linalg::lu(x[0], false).sign; }, {singular});
  CHECK(std::abs(sign(0)) == 1);
  CHECK(sign(1) == 0);
  singular(1, 0, 0) = std::nan("");
  const auto odd = played_one([](const Vars& x) { return linalg::lu(x[0]).lu; }, {singular});
  CHECK(std::isnan(odd(1, 1, 1)));
  CHECK(!std::isnan(odd(0, 1, 1)));
}

TEST_CASE("op lu_solve: the transposed system too, with the derivatives of the equation") {
  const Doubles a = numbers({2, 3, 3}, 7), b = numbers({2, 3, 2}, 8);
  for (const bool transposed : {false, true}) {
    const auto record = [&](const Vars& x) {
      const linalg::Lu f = linalg::lu(stop_gradient(x[0]));
      return apply(builtin_ops().at("lu_solve"), {x[0], x[1], f.lu, f.permutation}, {{"transposed", transposed}})[0];
    };
    const auto x = played([&](const Vars& v) { return Vars{record(v)}; }, {a, b}, 1e-12, 1e-3)[0];
    for_each_index({2, 3, 2}, [&](const Shape& at) {
      double sum = 0;
      for (std::int64_t k = 0; k < 3; ++k)
        sum += element(a, transposed ? Shape{at[0], k, at[1]} : Shape{at[0], at[1], k}) * element(x, {at[0], k, at[2]});
      CHECK(sum == doctest::Approx(element(b, at)).epsilon(1e-11));
    });
    check_gradient(record, {a, b});
    check_gradient(record, {numbers({3, 3}, 7), b});
  }
  Tape tape;
  const Var m = tape.input("a", {2, 2}), p = tape.input("p", {3}, Dtype::int64);
  CHECK_THROWS_AS(apply(builtin_ops().at("lu_solve"), {m, m, m, p}), ShapeError);
}
