// qr, eigh, svd and pinv.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "matrices.hpp"
#include "played.hpp"
#include "source_root.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/linear_algebra.hpp"

using namespace xtape;
using namespace xtape::tests;

namespace {
const std::vector<Shape> forms{{3, 3}, {2, 5, 3}, {2, 2, 3, 5}, {1, 1}, {4, 1}, {1, 4}, {0, 3}, {3, 0}, {0, 2, 2}};

/// xᵀ x, whose columns are orthonormal, is the identity.
void check_orthonormal(const Doubles& x) {
  const Shape shape = shape_of(x);
  for_each_index(shape, [&](const Shape& at) {
    if (at[at.size() - 2] >= shape.back()) return;
    double sum = 0;
    for (std::int64_t k = 0; k < shape[shape.size() - 2]; ++k) {
      Shape i = at, j = at;
      i.back() = at[at.size() - 2];
      i[i.size() - 2] = j[j.size() - 2] = k;
      sum += element(x, i) * element(x, j);
    }
    CHECK(std::abs(sum - (at.back() == at[at.size() - 2] ? 1 : 0)) < 1e-12);
  });
}
/// x times s [..., k] along its columns.
Doubles scaled(const Doubles& x, const Doubles& s) {
  return made_from(shape_of(x), [&](const Shape& i) {
    Shape at(i.begin(), i.end() - 2);
    at.push_back(i.back());
    return element(x, i) * element(s, at);
  });
}
/// A NaN or an infinity in one of two matrices makes all its results NaN, and none of the other's.
void check_not_finite(const Recording& record, const Doubles& two) {
  for (const double odd : {std::nan(""), HUGE_VAL})
    for (const std::size_t number : {0, 1}) {
      Doubles x = two;
      x.data()[number * x.size() / 2 + 1] = odd;
      for (const Doubles& found : played(record, {x}, 1e-12, 1e-4))
        for (std::size_t i = 0; i < found.size(); ++i)
          CHECK(std::isnan(found.data()[i]) == (i / (found.size() / 2) == number));
    }
}
/// Compares a function of a matrix, and its gradient, with the golden cases of this name.
void check_spectrum(const std::string& name, int cases, const std::function<Var(const Var&)>& function) {
  std::ifstream stream(source_root() + "/tests/golden/data/ops_linear_algebra.json");
  const auto array = [](const nlohmann::json& json) {
    const std::vector<std::size_t> shape = json.at("shape");
    Doubles values = Doubles::from_shape(shape);
    for (std::size_t i = 0; i < values.size(); ++i) values.data()[i] = json.at("data")[i];
    return values;
  };
  const nlohmann::json golden = nlohmann::json::parse(stream);
  for (const nlohmann::json& each : golden.at("cases")) {
    if (each.at("op") != name) continue;
    --cases;
    Tape tape;
    const Doubles point = array(each.at("inputs")[0]), weights = array(each.at("cotangents")[0]);
    const Var a = tape.constant(ArrayView(point)), cotangent = tape.constant(ArrayView(weights)), y = function(a);
    CHECK(near(as_doubles(evaluate(y)), array(each.at("outputs")[0]), 1e-10));
    CHECK(near(as_doubles(evaluate(grad({y}, {a}, {cotangent})[0])), array(each.at("gradients")[0]), 1e-10));
  }
  CHECK(cases == 0);
}
/// Of shape [m, n], with singular values that differ.
Doubles general(const Shape& shape) {
  return numbers(shape, 21);
}
}  // namespace

TEST_CASE("op qr: Q R is A, Q orthonormal, R triangular; gradients of square, tall and wide matrices") {
  check_golden("ops_linear_algebra.json", "qr", 1e-10, 1e-3);
  const auto record = [](const Vars& x) {
    const linalg::Qr f = linalg::qr(x[0]);
    return Vars{f.q, f.r};
  };
  for (const Shape& shape : forms) {
    const auto found = played(record, {general(shape)}, 1e-12, 1e-4);
    CHECK(near(product(found[0], found[1]), general(shape), 1e-12));
    check_orthonormal(found[0]);
    for_each_index(shape_of(found[1]), [&](const Shape& i) {
      if (i.back() < i[i.size() - 2]) CHECK(element(found[1], i) == 0);
    });
  }
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4, 2}, Shape{2, 4}}) check_gradients(record, {general(shape)});
  check_not_finite(record, general({2, 3, 2}));
  Tape tape;
  CHECK_THROWS_AS(linalg::qr(tape.input("x", {3})), ShapeError);
}

TEST_CASE("op eigh: V diag(w) Vᵀ is A, w ascends; gradients, also where eigenvalues are equal") {
  const auto record = [](const Vars& x) {
    const linalg::Eigh f = linalg::eigh(x[0]);
    return Vars{f.eigenvalues, f.eigenvectors};
  };
  for (const Shape& shape : {Shape{4, 4}, Shape{2, 3, 3, 3}, Shape{1, 1}, Shape{0, 0}, Shape{0, 2, 2}}) {
    const auto found = played(record, {positive(shape)}, 1e-12, 1e-4);
    CHECK(near(product(scaled(found[1], found[0]), found[1], true), positive(shape), 1e-12));
    check_orthonormal(found[1]);
    if (found[0].size() > 0) CHECK(std::is_sorted(found[0].begin(), found[0].begin() + shape.back()));
  }
  check_gradients(record, {positive({3, 3})});
  check_gradients(record, {positive({2, 2, 2})});
  // The values alone have a gradient where they are equal; the vectors have none.
  Tape tape;
  const Var a = tape.constant(ArrayView(Doubles(xt::eye<double>(3))));
  const linalg::Eigh f = linalg::eigh(a);
  CHECK(near(as_doubles(evaluate(grad(sum(f.eigenvalues), {a})[0])), xt::eye<double>(3), 1e-12));
  const Doubles of_vectors = as_doubles(evaluate(grad(sum(f.eigenvectors), {a})[0]));
  CHECK(!std::isfinite(of_vectors(0, 1)));
  check_not_finite(record, positive({2, 3, 3}));
  CHECK_THROWS_AS(linalg::eigh(tape.input("x", {2, 3})), ShapeError);
}

TEST_CASE("op eigh: V exp(w) Vᵀ and its gradient are those of PyTorch's matrix_exp") {
  check_spectrum("exp of a symmetric matrix", 1, [](const Var& a) {
    const linalg::Eigh f = linalg::eigh(a);
    return matmul(f.eigenvectors * expand_dims(exp(f.eigenvalues), -2), transpose(f.eigenvectors, {0, 2, 1}));
  });
}

TEST_CASE("op svd: U diag(sqrt(s)) Vh and its gradient are those of PyTorch") {
  check_spectrum("roots of singular values", 3, [](const Var& a) {
    const linalg::Svd f = linalg::svd(a);
    return matmul(f.u * expand_dims(sqrt(f.s), -2), f.vh);
  });
}

TEST_CASE("op svd: U diag(s) Vh is A, s descends; gradients of square, tall and wide matrices") {
  const auto record = [](const Vars& x) {
    const linalg::Svd f = linalg::svd(x[0]);
    return Vars{f.u, f.s, f.vh};
  };
  for (const Shape& shape : forms) {
    const auto found = played(record, {general(shape)}, 1e-12, 1e-4);
    CHECK(near(product(scaled(found[0], found[1]), found[2]), general(shape), 1e-12));
    check_orthonormal(found[0]);
    if (found[1].size() > 0)
      CHECK(std::is_sorted(found[1].begin(), found[1].begin() + shape_of(found[1]).back(), std::greater<>()));
  }
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 2}, Shape{2, 2, 3}}) {
    check_gradients(record, {general(shape)});
    for (std::size_t i = 0; i < 3; ++i) check_gradient([&](const Vars& x) { return record(x)[i]; }, {general(shape)});
  }
  // The values alone have a gradient where they are equal.
  Tape tape;
  const Var a = tape.constant(ArrayView(Doubles(xt::eye<double>(3))));
  CHECK(near(as_doubles(evaluate(grad(sum(linalg::svd(a).s), {a})[0])), xt::eye<double>(3), 1e-12));
  check_not_finite(record, general({2, 3, 2}));
}

TEST_CASE("op svd: matrices whose scratch memory 64 bits cannot count are refused") {
  Tape tape;
  const Var u = linalg::svd(tape.input("a", {0, std::int64_t{1} << 30, std::int64_t{1} << 30})).u;
  CHECK_THROWS_WITH_AS(Player(tape, {u}),
                       doctest::Contains("svd: the matrices of (0, 1073741824, 1073741824) are too large"), Error);
}

TEST_CASE("op pinv: the four equations of the pseudoinverse, ranks, gradients") {
  check_golden("ops_linear_algebra.json", "pinv", 1e-10, 1e-2);
  const auto record = [](const Vars& x) { return linalg::pinv(x[0]); };
  for (const Shape& shape : forms) {
    const Doubles a = general(shape), p = played([&](const Vars&x) { return Vars{record(x)}; }, {a}, 1e-11, 1e-2)[0];
    CHECK(near(product(product(a, p), a), a, 1e-11));
    CHECK(near(product(product(p, a), p), p, 1e-11));
  }
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 2}, Shape{2, 2, 3}}) check_gradient(record, {general(shape)});
  // Of constant rank 1, and where singular values are equal.
  check_gradient([](const Vars& x) { return linalg::pinv(matmul(expand_dims(x[0], -1), expand_dims(x[1], 0)), 1e-6); },
                 {numbers({4}, 1) + 2.0, numbers({3}, 2) + 2.0});
  check_gradient(record, {xt::eye<double>(3)});
}
