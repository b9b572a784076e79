#include <cmath>
#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const float nan_value = std::nanf("");
}

TEST_CASE("op argmax: the first of equal elements, the first NaN, golden values, refusals") {
  check_golden("ops_pointwise.json", "argmax");
  CHECK(played_on<float>([](const Vars& x) { return argmax(x[0]); },
                         {xt::xarray<float>{{1, 3, 3}, {2, nan_value, nan_value}}})
            .to<std::int64_t>() == xt::xarray<std::int64_t>{1, 1});
  CHECK(played_on<std::int32_t>([](const Vars& x) { return argmax(x[0], 0, true); },
                                {xt::xarray<std::int32_t>{{1, 9}, {2, -4}}})
            .to<std::int64_t>() == xt::xarray<std::int64_t>{{1, 0}});
  Tape tape;
  CHECK_THROWS_AS(argmax(tape.input("none", {2, 0})), ShapeError);
  CHECK_THROWS_AS(argmax(tape.input("mask", {2}, Dtype::boolean)), DtypeError);
}

TEST_CASE("op argmax: many short rows and columns, with ties, zeros of both signs and NaN") {
  const float choices[] = {-1, 0, -0.0f, 1, 1, nan_value};
  for (const std::size_t rows : {7, 8, 17, 70})
    for (const std::size_t size : {1, 2, 5, 31, 32, 40}) {
      xt::xarray<float> x = xt::xarray<float>::from_shape({rows, size});
      xt::xarray<std::int64_t> wanted = xt::zeros<std::int64_t>({rows});
      for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = choices[(i * 7919 + i / 5) % (i % 3 == 0 ? 6 : 5)];
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 1; i < size; ++i) {
          const float best = x(r, static_cast<std::size_t>(wanted(r))), each = x(r, i);
          if (best == best && (each > best || each != each)) wanted(r) = static_cast<std::int64_t>(i);
        }
      const xt::xarray<float> turned = xt::transpose(x);
      CHECK(played_on<float>([](const Vars& v) { return argmax(v[0]); }, {x}).to<std::int64_t>() == wanted);
      CHECK(played_on<float>([](const Vars& v) { return argmax(v[0], 0); }, {turned}).to<std::int64_t>() == wanted);
    }
}

TEST_CASE("op argmax: long rows of the lowest numbers and of -infinity") {
  const float infinity = std::numeric_limits<float>::infinity(), lowest = std::numeric_limits<float>::lowest();
  xt::xarray<float> x = xt::xarray<float>::from_shape({3, 80});
  x.fill(-infinity);
  x(1, 7) = x(1, 70) = lowest;
  x(2, 79) = nan_value;
  CHECK(played_on<float>([](const Vars& v) { return argmax(v[0]); }, {x}).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{0, 7, 79});
}

TEST_CASE("op top_k: descending order, ties keep their order, gradients, golden values, refusals") {
  check_golden("ops_pointwise.json", "top_k");
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{{1, 5, 5, 2}, {nan_value, 0, 7, -1}});
  const auto [values, indices] = top_k(x, 3);
  CHECK(fast(indices).to<std::int64_t>() == xt::xarray<std::int64_t>{{1, 2, 3}, {0, 2, 1}});
  const Array greatest = fast(values);
  const xt::xarray<float> wanted{5, 5, 2, nan_value, 7, 0};
  for (std::size_t i = 0; i < 6; ++i) CHECK(close(greatest.as<float>()[i], wanted(i), 0));
  CHECK(top_k(x, 0).first.shape() == Shape{2, 0});
  check_gradients([](const Vars& v) { return Vars{square(top_k(v[0], 2).first)}; },
                  {xt::xarray<double>{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}}});
  CHECK_THROWS_WITH_AS(top_k(x, 5), "top_k: k must be between 0 and the size of axis 1, got k 5 and shape (2, 4)",
                       ShapeError);
  CHECK_THROWS_AS(top_k(tape.input("s", {}), 0), ShapeError);
}
