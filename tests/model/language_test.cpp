// What lines of the expression language come to.
#include <doctest/doctest.h>

#include <cmath>

#include "definitions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::f;
using xtape::test::in_float64;
using xtape::test::one_function;
using xtape::test::same;
using Array2 = xt::xarray<double>;
using Row = xt::xtensor<double, 1>;
using Table = xt::xtensor<double, 2>;

namespace {
const Array2 table = Table{{1, 2, 3}, {4, 5, 6}};

/// A number worked out while recording, as an array of the shape of x.
double number(const std::string& expression) {
  return f({}, "0 * x + (" + expression + ")", table)(0, 0);
}
}  // namespace

TEST_CASE("sizes and numbers are worked out while recording") {
  CHECK(number("1 + 2 * 3") == 7);
  CHECK(number("(1 + 2) * 3") == 9);
  CHECK(number("2 ** 3 ** 2") == 512);
  CHECK(number("-2 ** 2") == -4);
  CHECK(number("2 ** -1") == 0.5);
  CHECK(number("12 / n") == 3);
  CHECK(number("7 // 2") == 3);
  CHECK(number("-7 // 2") == -4);
  CHECK(number("-7 % 3") == 2);
  CHECK(number("7.5 // 2") == 3);
  CHECK(number("1.0 * 7 / 2") == 3.5);
  CHECK(number("sqrt(16) + min(3, n, 9) + max(1, 2.5)") == 9.5);
  CHECK(number("floor(2.7) * 10 / 5") == 4);
  CHECK(number("1e-3 * .5 + 2.") == doctest::Approx(2.0005));
  CHECK(number("b * 100 + t") == 203);
  CHECK(number("x.shape[1] + x.rank") == 5);
  CHECK(std::isinf(number("-inf")));
}

TEST_CASE("flags and strings choose attributes") {
  const Array2 tanh_form = f({}, "gelu(x, approximate=form)", table);
  CHECK(same(tanh_form, f({}, "gelu(x, 'tanh')", table)));
  CHECK(!same(tanh_form, f({}, "gelu(x, 'none')", table)));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=wide and n > 3)", table), Table{{6}, {15}}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=not wide or n == 5)", table), Row{6, 15}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=form == 'none')", table), Row{6, 15}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=form != 'none')", table), Table{{6}, {15}}));
}

TEST_CASE("and and or look at the right side only where the left does not decide") {
  CHECK(same(f({}, "sum(x, axis=1, keepdims=n == 4 or n // 0 == 1)", table), Table{{6}, {15}}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=n == 3 and n // 0 == 1)", table), Row{6, 15}));
}

TEST_CASE("a condition chooses while recording, and only what it chooses is evaluated") {
  CHECK(same(f({}, "x if n == 4 else x + n // 0", table), f({}, "x", table)));
  CHECK(same(f({}, "2 * x if n < 4 else x + 1 if n == 4 else x", table), f({}, "x + 1", table)));
  CHECK(same(f({}, "(2 * x if n < 4 else x) + 1", table), f({}, "x + 1", table)));
  CHECK(same(f({}, "sum(x, axis=1 if wide else 0)", table), Row{6, 15}));
  CHECK(same(f({"a, b = (x, 2 * x) if wide and n == 4 else (x, x)"}, "b - a", table), f({}, "x", table)));
}

TEST_CASE("a comment ends a line") {
  CHECK(same(f({"y = x + 1  # [b, t]"}, "y  # as it is", table), f({}, "x + 1", table)));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=form == '#')  # '", table), Row{6, 15}));
}

TEST_CASE("training says whether the mode is train") {
  const Model model = Model::parse(one_function({}, "x + 1 if training else x"), in_float64());
  const NamedSizes sizes = {{"b", 2}, {"t", 3}};
  CHECK(same(test::play(model, "f", sizes, {ArrayView(table)}, Mode::train)[0], f({}, "x + 1", table)));
  CHECK(same(test::play(model, "f", sizes, {ArrayView(table)}, Mode::eval)[0], table));
  CHECK(same(f({"training = 2"}, "x * training", table), f({}, "x * 2", table)));
}

TEST_CASE("arithmetic and comparison of arrays record ops") {
  CHECK(same(f({}, "(2 * x - 1) / 4 + x ** 2", table), (2. * table - 1.) / 4. + table * table));
  CHECK(same(f({}, "-x % 4", table), Table{{3, 2, 1}, {0, 3, 2}}));
  CHECK(same(f({}, "where(x > 2 and not (x == 5), x, 0)", table), Table{{0, 0, 3}, {4, 0, 6}}));
  CHECK(same(f({}, "where(x <= 1 or x != x or 6 <= x, 1, x * 0)", table), Table{{1, 0, 0}, {0, 0, 1}}));
}

TEST_CASE("lines assign to one name or to several") {
  CHECK(same(f({"y = x + 1", "y = y * y"}, "y", table), (table + 1.) * (table + 1.)));
  CHECK(same(f({"a, c = split(x, (1, 2), axis=1)"}, "c - a", table), Table{{1, 2}, {1, 2}}));
  CHECK(same(f({"a, c = x + 1, x * 2", "(c, a) = a, c"}, "a - c", table), table - 1.));
  CHECK(same(f({"pair = (x, 3)"}, "pair[0] * pair[-1]", table), 3. * table));
  CHECK(same(f({"(only,) = (x,)"}, "only", table), table));
}

TEST_CASE("indexing and slicing follow NumPy") {
  CHECK(same(f({}, "x[0]", table), Row{1, 2, 3}));
  CHECK(same(f({}, "x[:, -1]", table), Row{3, 6}));
  CHECK(same(f({}, "x[..., 1:]", table), Table{{2, 3}, {5, 6}}));
  CHECK(same(f({}, "x[:, ::2]", table), Table{{1, 3}, {4, 6}}));
  CHECK(same(f({}, "x[1, :t - 1]", table), Row{4, 5}));
  CHECK(same(f({}, "x[:, -2:]", table), Table{{2, 3}, {5, 6}}));
  const Array2 fresh = f({}, "x[none, ..., none, 0]", table);
  CHECK(fresh.shape() == Array2::shape_type{1, 2, 1});
  CHECK(fresh(0, 1, 0) == 4);
}

TEST_CASE("steps may go backwards, as in NumPy") {
  CHECK(same(f({}, "x[::-1]", table), Table{{4, 5, 6}, {1, 2, 3}}));
  CHECK(same(f({}, "x[:, ::-2]", table), Table{{3, 1}, {6, 4}}));
  CHECK(same(f({}, "x[:, 1::-1]", table), Table{{2, 1}, {5, 4}}));
  CHECK(same(f({}, "x[0, :0:-1]", table), Row{3, 2}));
  CHECK(test::error_of([] { f({}, "x[::0]", table); }).find("a step cannot be 0") != std::string::npos);
}

TEST_CASE("@ is matmul") {
  CHECK(same(f({}, "x @ transpose(x, (1, 0))", table), Table{{14, 32}, {32, 77}}));
  CHECK(same(f({}, "2 * x @ transpose(x, (1, 0)) / 2", table), Table{{14, 32}, {32, 77}}));
  CHECK(test::error_of([] { f({}, "x * (2 @ 3)", table); }).find("'@'") != std::string::npos);
  CHECK(test::error_of([] { f({}, "x @ 3", table); }).find("'@'") != std::string::npos);
}

TEST_CASE("calls of ops take inputs in order, then attributes in order, or by name") {
  CHECK(same(f({}, "sum(x, 1)", table), Row{6, 15}));
  CHECK(same(f({}, "sum(x, (0, 1))", table), Array2(21.)));
  CHECK(same(f({}, "concat((x, 2 * x), axis=1)", table), f({}, "concat(x, 2 * x, axis=1)", table)));
  CHECK(same(f({}, "concat((x, x), 1)[:, 3:]", table), table));
  CHECK(same(f({}, "einsum('bt,ct->bc', x, x)", table), Table{{14, 32}, {32, 77}}));
  CHECK(f({}, "rearrange(x, 'b (t s) -> t b s', s=3)", table)(0, 1, 2) == 6);
  CHECK(same(f({}, "masked_fill(x, x > 4, -1)", table), Table{{1, 2, 3}, {4, -1, -1}}));
  CHECK(same(f({}, "maximum(x, 3)", table), Table{{3, 3, 3}, {4, 5, 6}}));
  CHECK(same(f({}, "layer_norm(x, epsilon=0.5)", table), f({}, "layer_norm(x, none, none, 0.5)", table)));
  CHECK(same(f({}, "cast(x > 3, 'float')", table), Table{{0, 0, 0}, {1, 1, 1}}));
  CHECK(same(f({}, "zeros(shape=(b, t)) + x", table), table));  // in the model's float64
}
