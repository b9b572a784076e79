#include <cmath>
#include <limits>
#include <type_traits>

#include "binary_ops.hpp"
#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
float only(const Array& array) {
  return array.as<float>()[0];
}
}  // namespace

TEST_CASE("op add: sums, gradients, golden values") {
  check_binary(add, [](auto a, auto b) { return a + b; });
  check_binary_gradients(add);
  check_golden("ops_pointwise.json", "add");
}

TEST_CASE("op sub: differences, gradients, golden values") {
  check_binary(sub, [](auto a, auto b) { return a - b; });
  check_binary_gradients(sub);
  check_golden("ops_pointwise.json", "sub");
}

TEST_CASE("op mul: products, gradients, golden values") {
  check_binary(mul, [](auto a, auto b) { return a * b; });
  check_binary_gradients(mul);
  check_golden("ops_pointwise.json", "mul");
}

TEST_CASE("op div: quotients, gradients, golden values; integers are divided as float32") {
  check_binary_as<float>(div, [](auto a, auto b) { return a / b; });
  check_binary_as<double>(div, [](auto a, auto b) { return a / b; });
  check_binary_gradients(div);
  check_golden("ops_pointwise.json", "div");
  const Array y = played<std::int64_t>([](const Vars& x) { return x[0] / x[1]; }, {{7, 1}, {2, 0}});
  CHECK(y.dtype() == Dtype::float32);
  CHECK(y.to<float>() == xt::xarray<float>{3.5f, inf32});
}

TEST_CASE("op pow: powers, gradients, golden values, short forms") {
  check_binary_as<float>(pow, [](auto a, auto b) { return std::pow(a, b); });
  check_binary_as<double>(pow, [](auto a, auto b) { return std::pow(a, b); });
  check_binary_gradients(pow);
  check_golden("ops_pointwise.json", "pow");
  const Array whole = played<std::int32_t>([](const Vars& x) { return pow(x[0], x[1]); },
                                           {{2, -3, 5, 2, -1, 0}, {10, 3, 0, -1, -3, 0}});
  CHECK(whole.to<std::int32_t>() == xt::xarray<std::int32_t>{1024, -27, 1, 0, -1, 1});
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK(pow(x, 2).node().op->name == "square");
  CHECK(pow(x, 0.5).node().op->name == "sqrt");
  CHECK(pow(x, -0.5).node().op->name == "rsqrt");
  CHECK(pow(x, 1).id() == x.id());
  CHECK(pow(x, 3).node().op->name == "pow");
  check_gradients_at([](const Var& v) { return pow(v, 3); }, {-1.5, 0.0, 2.0});
  check_gradients_at([](const Var& v) { return pow(v, -2.5); }, {0.5, 2.0});
}

TEST_CASE("op pow: the gradient is finite at 0 where PyTorch's is") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{0, 0, 0});
  const Var e = tape.parameter("e", xt::xarray<float>{0, 1, 3});
  const Vars g = grad(sum(pow(x, e)), {x, e});
  CHECK(fast(g[0]).to<float>() == xt::xarray<float>{0, 1, 0});
  CHECK(fast(g[1]).to<float>() == xt::xarray<float>{0, 0, 0});
}

TEST_CASE("op maximum: the larger value, half of the gradient to each of two equal values, NaN stays") {
  check_binary(maximum, [](auto a, auto b) { return a > b ? a : b; });
  check_binary_gradients(maximum);
  check_golden("ops_pointwise.json", "maximum");
  const Array y =
      played<float>([](const Vars& x) { return maximum(x[0], x[1]); }, {{not_a_number32, 1}, {1, not_a_number32}});
  for (std::size_t i = 0; i < 2; ++i) CHECK(std::isnan(y.as<float>()[i]));
}

TEST_CASE("op minimum: the smaller value, half of the gradient to each of two equal values, NaN stays") {
  check_binary(minimum, [](auto a, auto b) { return a < b ? a : b; });
  check_binary_gradients(minimum);
  check_golden("ops_pointwise.json", "minimum");
  const Array y =
      played<float>([](const Vars& x) { return minimum(x[0], x[1]); }, {{not_a_number32, 1}, {1, not_a_number32}});
  for (std::size_t i = 0; i < 2; ++i) CHECK(std::isnan(y.as<float>()[i]));
}

TEST_CASE("op neg: changes the sign") {
  CHECK(played<std::int32_t>([](const Vars& x) { return -x[0]; }, {{1, -2, 0}}).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{-1, 2, 0});
  check_gradients_at([](const Var& x) { return -x * x; }, {1.0, -2.0});
  check_golden("ops_pointwise.json", "neg");
}

TEST_CASE("op abs: drops the sign, no gradient at 0") {
  CHECK(played<std::int64_t>([](const Vars& x) { return abs(x[0]); }, {{1, -2, 0}}).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{1, 2, 0});
  check_gradients_at([](const Var& x) { return abs(x) * x; }, {1.0, -2.0});
  check_golden("ops_pointwise.json", "abs");
}

TEST_CASE("op sign: -1, 0, 1") {
  CHECK(played<float>([](const Vars& x) { return sign(x[0]); }, {{0.5f, -inf32, 0, -0.0f}}).to<float>() ==
        xt::xarray<float>{1, -1, 0, 0});
  CHECK(std::isnan(only(played<float>([](const Vars& x) { return sign(x[0]); }, {{not_a_number32}}))));
  CHECK(played<std::int32_t>([](const Vars& x) { return sign(x[0]); }, {{7, -7, 0}}).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{1, -1, 0});
}

TEST_CASE("op floor: rounds down") {
  CHECK(played<double>([](const Vars& x) { return floor(x[0]); }, {{0.5, -0.5, 2, -inf32}}).to<double>() ==
        xt::xarray<double>{0, -1, 2, -inf32});
  CHECK(played<std::int32_t>([](const Vars& x) { return floor(x[0]); }, {{7, -7}}).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{7, -7});
}

TEST_CASE("op square: x * x") {
  CHECK(played<std::int32_t>([](const Vars& x) { return square(x[0]); }, {{3, -4}}).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{9, 16});
  check_gradients_at([](const Var& x) { return square(x) * x; }, {1.0, -2.0, 0.0});
  check_golden("ops_pointwise.json", "square");
}

TEST_CASE("arithmetic refuses bool and shapes that do not broadcast, and takes arrays without elements") {
  Tape tape;
  const Var mask = tape.input("mask", {3}, Dtype::boolean);
  const Var a = tape.input("a", {2, 3});
  const Var b = tape.input("b", {2});
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(mask + mask, "add: takes numbers, received bool: cast to a number first, or use the logical ops",
                       DtypeError);
  CHECK_THROWS_WITH_AS(a * b,
                       "mul: shapes (2, 3) and (2,) do not broadcast: counted from the back, sizes must be equal or 1",
                       ShapeError);
  CHECK(tape.size() == size);
  const xt::xarray<float> none = xt::xarray<float>::from_shape({0, 3});
  CHECK(played_on<float>([](const Vars& x) { return x[0] + x[1]; }, {none, xt::xarray<float>{1, 2, 3}}).shape() ==
        Shape{0, 3});
}

TEST_CASE("arithmetic on long arrays is right in every element for any number of threads") {
  const std::int64_t n = 100003;
  Tape tape;
  Array values(Dtype::float32, {n});
  for (std::int64_t i = 0; i < n; ++i) values.as<float>()[i] = static_cast<float>(i % 1013) / 17 - 20;
  const Var x = tape.parameter("x", values);
  const Var y = (x * 3 - x / 7) * abs(x) + maximum(x, 2);
  const Array one = fast(y, 1), three = fast(y, 3);
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = values.as<float>()[i];
    REQUIRE(close(one.as<float>()[i], (v * 3 - v / 7) * std::abs(v) + std::max(v, 2.0), 1e-5));
    REQUIRE(one.as<float>()[i] == three.as<float>()[i]);
  }
}

/// The result in two's complement, which wraps.
template <class T>
void check_wrapping() {
  constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  const auto values = [](const std::function<Var(const Vars&)>& function,
                         std::initializer_list<std::initializer_list<T>> points) {
    return played<T>(function, points).template to<T>();
  };
  CHECK(values([](const Vars& x) { return x[0] + x[1]; }, {{most, least}, {T{1}, T{-1}}}) == listed<T>({least, most}));
  CHECK(values([](const Vars& x) { return x[0] - x[1]; }, {{most, least}, {T{-1}, T{1}}}) == listed<T>({least, most}));
  CHECK(values([](const Vars& x) { return x[0] * x[1]; }, {{most, least}, {T{2}, T{-1}}}) == listed<T>({T{-2}, least}));
  CHECK(values([](const Vars& x) { return -x[0]; }, {{least, most}}) == listed<T>({least, T(-most)}));
  CHECK(values([](const Vars& x) { return abs(x[0]); }, {{least, most}}) == listed<T>({least, most}));
  CHECK(values([](const Vars& x) { return square(x[0]); }, {{most, least}}) == listed<T>({1, 0}));
  CHECK(values([](const Vars& x) { return einsum("i,i->", {x[0], x[1]}); }, {{most, most}, {T{1}, T{1}}})() == T{-2});
  Tape tape;
  const Var x = tape.constant(listed<T>({most, 0})), ones = tape.constant(listed<T>({1, 1}));
  const Var zeros = tape.constant(xt::xarray<std::int64_t>{0, 0});
  CHECK(fast(index_add(x, 0, zeros, ones)).template to<T>() == listed<T>({T(least + 1), 0}));
  CHECK(fast(scatter_add(x, 0, zeros, ones)).template to<T>() == listed<T>({T(least + 1), 0}));
}

TEST_CASE("integers wrap on overflow, as in NumPy") {
  check_wrapping<std::int32_t>();
  check_wrapping<std::int64_t>();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  CHECK(played<std::int64_t>([](const Vars& x) { return sum(x[0]); }, {{most, 1}}).to<std::int64_t>()() == least);
  CHECK(played<std::int64_t>([](const Vars& x) { return cumsum(x[0]); }, {{most, 1}}).to<std::int64_t>() ==
        listed<std::int64_t>({most, least}));
}
