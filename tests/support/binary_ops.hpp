/// Helpers for the tests of binary elementwise ops.
#pragma once

#include <doctest/doctest.h>

#include "play.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {

using Binary = Var (*)(const Operand&, const Operand&);

/// Checks element [i, j] of the result for shapes (2, 3) and (3,), for every number dtype.
template <class T, class Expected>
void check_binary_as(Binary op, const Expected& expected) {
  const xt::xarray<T> a{{T(1.5), T(0), T(-2)}, {T(7), T(2), T(-5)}};
  const xt::xarray<T> b{T(1.5), T(3), T(-2)};
  const Array y = played_on<T>([&](const Vars& x) { return op(x[0], x[1]); }, {a, b});
  REQUIRE(y.shape() == Shape{2, 3});
  REQUIRE(y.dtype() == dtype_of<T>());
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      CHECK(close(static_cast<double>(y.as<T>()[3 * i + j]), static_cast<double>(expected(a(i, j), b(j))), 1e-7));
}
template <class Expected>
void check_binary(Binary op, const Expected& expected) {
  check_binary_as<float>(op, expected);
  check_binary_as<double>(op, expected);
  check_binary_as<std::int32_t>(op, expected);
  check_binary_as<std::int64_t>(op, expected);
}

/// Checks gradients with broadcasting of one operand and of both operands. All points are away from kinks.
inline void check_binary_gradients(Binary op) {
  const xt::xarray<double> a{{0.5, 1.75, 2.5}, {3.25, 0.7, 1.4}};
  const xt::xarray<double> b{1.25, 2.25, 0.9};
  xt::xarray<double> c = listed({1.1, 2.2});
  c.reshape({2, 1});
  const auto both = [op](const Vars& x) { return Vars{op(x[0], x[1])}; };
  check_gradients(both, {a, b});
  check_gradients(both, {b, c});
  check_gradients_on([op](const Var& x) { return op(op(x, 2.3), op(1.2, x)); }, a);
}

}  // namespace xtape
