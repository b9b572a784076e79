#include <doctest/doctest.h>

#include "xtape/op/op.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
using Doubles = xt::xarray<double>;
using Indices = xt::xarray<std::int64_t>;

Doubles counting(const std::vector<std::size_t>& shape) {
  Doubles x = Doubles::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i) x.flat(i) = 0.25 * static_cast<double>(i) - 1;
  return x;
}

bool checks(const std::function<Vars(const Vars&)>& function, const std::vector<Doubles>& points) {
  const GradcheckReport first = gradcheck(function, points);
  GradcheckOptions options;
  options.second = true;
  const GradcheckReport second =
      gradcheck([&](const Vars& x) { return Vars{square(function(x)[0])}; }, points, options);
  INFO(first.message, second.message);
  CHECK(first.passed);
  CHECK(second.passed);
  return first.passed && second.passed;
}
}  // namespace

TEST_CASE("op take: slices along any axis") {
  const Doubles x = counting({3, 4, 2});
  const Indices indices{{2, 0}, {2, 1}};
  Tape tape;
  const Var array = tape.constant(x);
  const Var picked = tape.constant(indices);
  const Doubles rows = value<double>(take(array, picked));
  const Doubles columns = value<double>(take(array, picked, 1));
  CHECK(take(array, picked).shape() == Shape{2, 2, 4, 2});
  CHECK(take(array, picked, -2).shape() == Shape{3, 2, 2, 2});
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 2; ++b) {
      const auto index = static_cast<std::size_t>(indices(a, b));
      for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t j = 0; j < 4; ++j) CHECK(rows(a, b, j, i) == x(index, j, i));
        for (std::size_t o = 0; o < 3; ++o) CHECK(columns(o, a, b, i) == x(o, index, i));
      }
    }
}

TEST_CASE("op take: gradients add up over equal indices") {
  for (std::int64_t axis : {0, 1}) {
    const auto function = [axis](const Vars& v) {
      return Vars{take(v[0], v[0].tape().constant(Indices{2, 0, 2}), axis)};
    };
    CHECK(checks(function, {counting({3, 3})}));
  }
}

TEST_CASE("op gather: element by element, as torch.gather") {
  const Doubles x = counting({2, 3, 2});
  const Indices indices{{{2, 0}, {1, 1}}, {{0, 0}, {2, 1}}};
  Tape tape;
  const Doubles y = value<double>(gather(tape.constant(x), 1, tape.constant(indices)));
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t c = 0; c < 2; ++c) CHECK(y(a, b, c) == x(a, static_cast<std::size_t>(indices(a, b, c)), c));
  const auto function = [&](const Vars& v) { return Vars{gather(v[0], 1, v[0].tape().constant(indices))}; };
  CHECK(checks(function, {x}));
}

TEST_CASE("gather and scatter_add take indices with fewer elements than x along the other axes") {
  const Doubles x = counting({3, 2, 4});
  const Indices indices{{{1, 0, 1}, {0, 0, 1}, {1, 1, 1}}, {{0, 1, 1}, {1, 1, 0}, {0, 0, 0}}};  // 2, 3, 3
  const Doubles part = counting({2, 3, 3});
  Tape tape;
  const Doubles y = value<double>(gather(tape.constant(x), 1, tape.constant(indices)));
  const Doubles z = value<double>(scatter_add(tape.constant(x), -2, tape.constant(indices), tape.constant(part)));
  REQUIRE(y.size() == 18);
  Doubles expected = x;
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t c = 0; c < 3; ++c) {
        const auto at = static_cast<std::size_t>(indices(a, b, c));
        CHECK(y(a, b, c) == x(a, at, c));
        expected(a, at, c) += part(a, b, c);
      }
  CHECK(z == expected);
  CHECK(checks([&](const Vars& v) { return Vars{gather(v[0], 1, v[0].tape().constant(indices))}; }, {x}));
  CHECK(checks([&](const Vars& v) { return Vars{scatter_add(v[0], 1, v[0].tape().constant(indices), v[1])}; },
               {x, part}));
  const Var wide = tape.constant(Indices{{{0, 0, 0, 0, 0}}}), flat = tape.constant(Indices{0});
  CHECK_THROWS_WITH_AS(gather(tape.constant(x), 1, wide),
                       "gather: indices of shape (1, 1, 5) must have the axes of x, (3, 2, 4), none longer but axis 1",
                       ShapeError);
  CHECK_THROWS_AS(gather(tape.constant(x), 1, flat), ShapeError);
  CHECK(gather(tape.constant(x), 1, tape.input("none", {0, 5, 4}, Dtype::int64)).shape() == Shape{0, 5, 4});
}

TEST_CASE("op index_add: adds slices at their indices") {
  const auto function = [](const Vars& v) {
    return Vars{index_add(v[0], 0, v[0].tape().constant(Indices{1, 0, 1}), v[1])};
  };
  Tape tape;
  const Var y = function({tape.constant(counting({2, 2})), tape.constant(counting({3, 2}))})[0];
  const Doubles expected{{-1 + -0.5, -0.75 + -0.25}, {-0.5 + -1 + 0, -0.25 + -0.75 + 0.25}};
  CHECK(value<double>(y) == expected);
  CHECK(checks(function, {counting({2, 2}), counting({3, 2})}));
}

TEST_CASE("op scatter_add: adds elements at their indices") {
  const auto function = [](const Vars& v) {
    return Vars{scatter_add(v[0], 1, v[0].tape().constant(Indices{{1, 1, 0}}), v[1])};
  };
  Tape tape;
  const Var y = function({tape.constant(Doubles{{10, 20}}), tape.constant(Doubles{{1, 2, 4}})})[0];
  CHECK(value<double>(y) == Doubles{{14, 23}});
  CHECK(checks(
      [](const Vars& v) {
        return Vars{scatter_add(v[0], 1, v[0].tape().constant(Indices{{1, 1}, {0, 1}}), v[1])};
      },
      {counting({2, 3}), counting({2, 2})}));
}

TEST_CASE("op one_hot: ones at the indices, zeros for indices out of range") {
  Tape tape;
  const xt::xarray<float> expected{{0, 0, 1}, {1, 0, 0}, {0, 0, 0}};
  CHECK(value<float>(one_hot(tape.constant(Indices{2, 0, 7}), 3)) == expected);
  CHECK(one_hot(tape.constant(Indices{2}), 3, Dtype::boolean).dtype() == Dtype::boolean);
  CHECK_THROWS_WITH_AS(one_hot(tape.constant(Doubles{1.0}), 3),
                       "one_hot: 'indices' must be an integer array, got float64 (1,)", DtypeError);
}

TEST_CASE("indices out of range are errors, and nothing is written") {
  Tape tape;
  const Var x = tape.input("x", {3, 2});
  const Var indices = tape.input("indices", {2}, Dtype::int32);
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = take(x, indices);
  const Var z = index_add(x, 0, indices, tape.constant(0.0, Dtype::float32) + take(x, indices));
  Player player(tape, {y, z});
  const xt::xarray<float> values = xt::ones<float>({3, 2});
  player.play({{x, values}, {indices, xt::xarray<std::int32_t>{2, 1}}});
  for (const xt::xarray<std::int32_t>& wrong : {xt::xarray<std::int32_t>{0, 3}, xt::xarray<std::int32_t>{0, -1}})
    CHECK_THROWS_AS(player.play({{x, values}, {indices, wrong}}), Error);
  const std::string error = ": take: index 3 (at flat position 1) is out of range: x has size 3 along the axis";
  CHECK_THROWS_WITH(player.play({{x, values}, {indices, xt::xarray<std::int32_t>{0, 3}}}),
                    (to_string(at) + error).c_str());
}

TEST_CASE("indexing checks its shapes") {
  Tape tape;
  const Var x = tape.input("x", {3, 2});
  const Var i = tape.input("i", {2, 2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(index_add(x, 0, i, x),
                       "index_add: 'part' has shape (3, 2), but x and the indices require (2, 2, 2)", ShapeError);
  CHECK_THROWS_WITH_AS(take(x, i, 2), "take: axis 2 is out of range for an array of 2 axes", ShapeError);
  CHECK(take(x, tape.input("none", {0}, Dtype::int64)).shape() == Shape{0, 2});
}

TEST_CASE("a product and an embedding's gradient are summed in one array") {
  Tape tape;
  const Var table = tape.parameter("table", ArrayView(counting({5, 4})));
  const Var indices = tape.input("indices", {3}, Dtype::int64);
  const Var rows = take(table, indices);
  const Var scores = einsum("id,vd->iv", rows, table);
  const Var gradient = grad(sum(square(scores)), {table})[0];
  Player player(tape, {gradient});
  PlayerOptions plain;
  plain.passes = Passes::reference();
  Player reference(tape, {gradient}, plain);
  for (Player* each : {&player, &reference}) each->play({{indices, Indices{4, 0, 4}}});
  // The loss is the sum of s^2 over rows r and v of the table, for each index r, where s = sum over d of T[r, d] T[v,
  // d].
  const Doubles t = counting({5, 4});
  Doubles wanted = xt::zeros<double>({5, 4});
  for (const std::size_t r : {4, 0, 4})
    for (std::size_t v = 0; v < 5; ++v) {
      double s = 0;
      for (std::size_t d = 0; d < 4; ++d) s += t(r, d) * t(v, d);
      for (std::size_t d = 0; d < 4; ++d) wanted(r, d) += 2 * s * t(v, d), wanted(v, d) += 2 * s * t(r, d);
    }
  for (Player* each : {&player, &reference}) {
    const Doubles got = each->value<double>(gradient);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got.flat(i) == doctest::Approx(wanted.flat(i)).epsilon(1e-12));
  }
}

TEST_CASE("ops that change few elements write over their first input") {
  // Otherwise the gradient of an embedding needs its memory twice.
  for (const char* name : {"index_add", "scatter_add", "index_reduce", "scatter_elements", "tril", "triu"}) {
    CAPTURE(name);
    CHECK(builtin_ops().at(name).lowering.overwrites == std::vector<int>{0});
  }
}
