// The values of sparse Jacobians and Hessians.
#include <doctest/doctest.h>

#include "grad/sparse_functions.hpp"
#include "xtape/grad.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"

using namespace xtape;
using namespace xtape::sparse_tests;

namespace {
Numbers dense_of(const SparseMatrix& sparse, const std::vector<Feed>& feeds) {
  const Numbers values = evaluate(cast(sparse.values, Dtype::float64), feeds).to<double>();
  Numbers dense = xt::zeros<double>({sparse.pattern.shape[0], sparse.pattern.shape[1]});
  for (std::size_t i = 0; i < sparse.pattern.size(); ++i)
    dense(sparse.pattern.rows[i], sparse.pattern.columns[i]) = values(i);
  return dense;
}
}  // namespace

TEST_CASE("the values of a sparse Jacobian are those of the dense one, in every mode and for every chunk") {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    Tape tape;
    const Var x = tape.input("x", {2, 4}, dtype);
    const auto numbers = [&]() {
      return dtype == Dtype::float64 ? Array(spread({2, 4}))
                                     : Array(xt::xarray<float>(xt::cast<float>(spread({2, 4}))));
    };
    const Array at = numbers();
    const Var y = sin(slice(x, {0, 0}, {2, 3}) * slice(x, {0, 1}, {2, 4})) + slice(flip(x, {0}), {0, 0}, {2, 3});
    const Numbers dense = evaluate(cast(reshape(jacobian(y, x), {6, 8}), Dtype::float64), {{x, at}}).to<double>();
    for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::forward, JacobianMode::reverse})
      for (const std::int64_t chunk_size : {0, 1, 2, 100}) {
        CAPTURE(chunk_size);
        const SparseMatrix sparse = sparse_jacobian(y, x, {.pattern = {}, .mode = mode, .chunk_size = chunk_size});
        CHECK(sparse.values.dtype() == dtype);
        CHECK(sparse.values.shape() == Shape{18});
        CHECK(sparse.colours < 6);
        CHECK(xt::allclose(dense_of(sparse, {{x, at}}), dense));
      }
  }
}

TEST_CASE("the automatic mode takes the fewer colours") {
  Tape tape;
  const Var x = tape.input("x", {5}, Dtype::float64);
  const Var one_row = concat({reshape(sum(square(x)), {1}), sin(x)}, 0);
  CHECK(sparse_jacobian(one_row, x).colours == 2);
  CHECK(sparse_jacobian(one_row, x, {.pattern = {}, .mode = JacobianMode::forward, .chunk_size = 0}).colours == 5);
  const Var one_column = square(x) * slice(x, {0}, {1});
  CHECK(sparse_jacobian(one_column, x).colours == 2);
  CHECK(sparse_jacobian(one_column, x, {.pattern = {}, .mode = JacobianMode::reverse, .chunk_size = 0}).colours == 5);
}

TEST_CASE("the values of a sparse Hessian are those of the dense one") {
  Tape tape;
  const Var x = tape.input("x", {9}, Dtype::float64);
  const Numbers at = spread({9});
  const auto mixed = [](const Var& x) {
    return banded(x) + arrow(x) + sum(slice(x, {3}, {6})) * sum(exp(slice(x, {6}, {8})));
  };
  for (const Var& y : {banded(x), arrow(x), mixed(x), reshape(banded(x), {1, 1})}) {
    const Numbers dense = evaluate(hessian(y, x), {{x, at}}).to<double>();
    for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::reverse})
      for (const std::int64_t chunk_size : {0, 1, 2}) {
        const SparseMatrix sparse = sparse_hessian(y, x, {.pattern = {}, .mode = mode, .chunk_size = chunk_size});
        CHECK(sparse.colours < 9);
        CHECK(xt::allclose(dense_of(sparse, {{x, at}}), dense));
      }
  }
}

TEST_CASE("a given pattern says which elements and in which order") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64);
  const Numbers at = spread({4});
  const SparsityPattern lower{{4, 4}, {3, 1, 0, 2, 3, 1, 2}, {2, 0, 0, 1, 3, 1, 2}};
  const SparseMatrix found = sparse_hessian(banded(x), x, {.pattern = lower, .mode = {}, .chunk_size = 0});
  CHECK(found.pattern == lower);
  const Numbers dense = evaluate(hessian(banded(x), x), {{x, at}}).to<double>();
  const Numbers values = evaluate(found.values, {{x, at}}).to<double>();
  for (std::size_t i = 0; i < lower.size(); ++i)
    CHECK(values(i) == doctest::Approx(dense(lower.rows[i], lower.columns[i])));
  const SparsityPattern more{{4, 4}, {2, 2, 1, 0, 3}, {0, 2, 1, 0, 3}};
  const Numbers with_zero =
      evaluate(sparse_jacobian(sin(x), x, {.pattern = more, .mode = {}, .chunk_size = 0}).values, {{x, at}})
          .to<double>();
  CHECK(with_zero(0) == 0);
  CHECK(with_zero(1) == doctest::Approx(std::cos(at(2))));
}

TEST_CASE("sparse values are differentiable, along tangents and in batches") {
  Tape tape;
  const Var x = tape.input("x", {5}, Dtype::float64), v = tape.input("v", {5}, Dtype::float64);
  const Numbers at = spread({5}), along{0.3, -1.0, 0.5, 2.0, -0.7};
  const SparseMatrix sparse = sparse_hessian(banded(x), x);
  const auto values_at = [&](double step) {
    return evaluate(sparse.values, {{x, Numbers(at + step * along)}}).to<double>();
  };
  const Numbers differences = (values_at(1e-5) - values_at(-1e-5)) / 2e-5;
  const Numbers tangent = evaluate(jvp({sparse.values}, {x}, {v})[0], {{x, at}, {v, along}}).to<double>();
  CHECK(xt::allclose(tangent, differences, 1e-6, 1e-7));
  const Var weights = tape.constant(spread({sparse.pattern.size()}));
  const Numbers slope = evaluate(grad(sum(sparse.values * weights), {x})[0], {{x, at}}).to<double>();
  CHECK(xt::sum(slope * along)() ==
        doctest::Approx(xt::sum(differences * spread({sparse.pattern.size()}))()).epsilon(1e-6));

  const Var xs = tape.input("xs", {2, 5}, Dtype::float64);
  const Var mapped =
      vmap([](const Vars& each) { return Vars{sparse_jacobian(sin(each[0]) * flip(each[0], {0}), each[0]).values}; },
           {xs})[0];
  const Var alone = sparse_jacobian(sin(x) * flip(x, {0}), x).values;
  Numbers both = Numbers::from_shape({2, 5});
  std::copy(at.begin(), at.end(), both.begin());
  std::copy(along.begin(), along.end(), both.begin() + 5);
  const Numbers found = evaluate(mapped, {{xs, both}}).to<double>();
  for (std::size_t k = 0; k < 2; ++k) {
    const Numbers one = evaluate(alone, {{x, k == 0 ? at : along}}).to<double>();
    REQUIRE(found.size() == 2 * one.size());
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(found(k, i) == doctest::Approx(one(i)));
  }
}

TEST_CASE("the Jacobian through dropout has the numbers that the output was drawn with") {
  Tape tape;
  const Var x = tape.input("x", {8}, Dtype::float64), y = dropout(x, 0.5) * 3;
  const SparseMatrix sparse = sparse_jacobian(y, x);
  CHECK(sparse.colours == 1);
  Player player(tape, {y, sparse.values});
  player.play({{x, Numbers(xt::ones<double>({8}))}}, 5);
  CHECK(player.view(sparse.values).to<double>() == player.view(y).to<double>());
}

TEST_CASE("arrays without elements, scalars and constant functions") {
  Tape tape;
  const Var none = tape.input("none", {0}, Dtype::float64), x = tape.input("x", {3}, Dtype::float64),
            s = tape.input("s", {}, Dtype::float64);
  CHECK(sparse_jacobian(sin(none), none).values.shape() == Shape{0});
  CHECK(sparse_hessian(sum(square(none)), none).pattern == SparsityPattern{{0, 0}, {}, {}});
  CHECK(sparse_jacobian(slice(x, {0}, {0}), x).pattern == SparsityPattern{{0, 3}, {}, {}});
  const SparseMatrix linear = sparse_hessian(sum(x), x);
  CHECK(linear.colours == 0);
  CHECK(evaluate(linear.values, {{x, spread({3})}}).count() == 0);
  CHECK(evaluate(sparse_hessian(s * s * s, s).values, {{s, Numbers(3.0)}}).as<double>()[0] == 18);
  CHECK(evaluate(sparse_jacobian(s * s, s).values, {{s, Numbers(3.0)}}).as<double>()[0] == 6);
}

TEST_CASE("sparse derivatives refuse what does not fit, and then nothing is recorded") {
  Tape tape, elsewhere;
  const Var x = tape.input("x", {4}, Dtype::float64), n = tape.input("n", {4}, Dtype::int64);
  const Var far = elsewhere.input("far", {4}, Dtype::float64), y = x * 2, total = sum(y * y);
  const auto with = [](SparsityPattern pattern) {
    return SparseOptions{.pattern = std::move(pattern), .mode = {}, .chunk_size = 0};
  };
  const std::size_t size = tape.size();
  CHECK_THROWS_AS(jacobian_sparsity(y, far), HandleError);
  CHECK_THROWS_AS(jacobian_sparsity(y, Var()), HandleError);
  CHECK_THROWS_AS(jacobian_sparsity(y, n), DtypeError);
  CHECK_THROWS_AS(sparse_jacobian(n, x), DtypeError);
  CHECK_THROWS_AS(sparse_hessian(y, x), ShapeError);
  CHECK_THROWS_AS(hessian_sparsity(y, x), ShapeError);
  CHECK_THROWS_AS(sparse_hessian(total, far), HandleError);
  CHECK_THROWS_WITH_AS(sparse_hessian(total, x, {.pattern = {}, .mode = {}, .chunk_size = -1}),
                       doctest::Contains("chunk_size must not be negative, got -1"), Error);
  CHECK_THROWS_WITH_AS(sparse_jacobian(y, x, with({{4, 3}, {0}, {0}})),
                       doctest::Contains("the pattern has shape (4, 3), but the matrix is (4, 4)"), ShapeError);
  CHECK_THROWS_WITH_AS(sparse_jacobian(y, x, with({{4}, {0}, {0}})), doctest::Contains("rows and columns"), ShapeError);
  CHECK_THROWS_WITH_AS(sparse_jacobian(y, x, with({{4, 4}, {0, 1}, {0}})), doctest::Contains("2 rows and 1 columns"),
                       Error);
  CHECK_THROWS_WITH_AS(sparse_hessian(total, x, with({{4, 4}, {0, 4}, {0, 1}})),
                       doctest::Contains("element (4, 1) of the pattern is outside of its shape (4, 4)"), Error);
  CHECK_THROWS_WITH_AS(sparse_hessian(total, x, with({{4, 4}, {1, 2, 1}, {0, 0, 0}})),
                       doctest::Contains("(1, 0) twice"), Error);
  CHECK_THROWS_AS(colour_symmetric({{4, 3}, {}, {}}), ShapeError);
  CHECK(tape.size() == size);
}
