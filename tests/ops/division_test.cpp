#include <cmath>
#include <limits>

#include "binary_ops.hpp"
#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op mod: the remainder has the sign of the divisor") {
  check_binary(mod, [](auto a, auto b) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return x - std::floor(x / y) * y;
  });
  check_binary_gradients(mod);
  check_golden("ops_pointwise.json", "mod");
  constexpr auto lowest = std::numeric_limits<std::int32_t>::min();
  const Array y = played<std::int32_t>([](const Vars& x) { return mod(x[0], x[1]); }, {{5, lowest, -7}, {0, -1, 3}});
  CHECK(y.to<std::int32_t>() == xt::xarray<std::int32_t>{0, 0, 2});
}

TEST_CASE("op mod: exact multiples give a zero of the divisor's sign, and infinite divisors are as in Python") {
  const Array y =
      played<double>([](const Vars& x) { return mod(x[0], x[1]); }, {{-6, 6, -1, 1, 5}, {3, -3, inf32, -inf32, inf32}});
  CHECK(y.to<double>() == xt::xarray<double>{0, 0, inf32, -inf32, 5});
  CHECK(!std::signbit(y.as<double>()[0]));
  CHECK(std::signbit(y.as<double>()[1]));
}

TEST_CASE("op floor_divide: quotients are rounded down, as in Python") {
  check_binary(floor_divide,
               [](auto a, auto b) { return std::floor(static_cast<double>(a) / static_cast<double>(b)); });
  const auto divide = [](const Vars& x) { return floor_divide(x[0], x[1]); };
  const Array y = played<double>(divide, {{7, -7, 1, -1, 1, -1, 0.3, 6}, {2, 2, inf32, inf32, 0, 0, 0.1, -0.5}});
  CHECK(y.to<double>() == xt::xarray<double>{3, -4, 0, -1, inf32, -inf32, 2, -12});  // 0.3 is less than 3 times 0.1
  CHECK(std::isnan(played<double>(divide, {{0}, {0}}).as<double>()[0]));
  CHECK(std::isnan(played<double>(divide, {{inf32}, {2}}).as<double>()[0]));
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK_FALSE(floor_divide(x, 2).node().op->differentiable);
  CHECK(grad(sum(floor_divide(x, 2) * x), {x})[0].shape() == Shape{2});
}

TEST_CASE("op floor_divide: integers are divided exactly, and divisors 0 and -1 do not trap") {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min(), greatest = std::numeric_limits<std::int64_t>::max();
  const auto divide = [](const Vars& x) { return floor_divide(x[0], x[1]); };
  const Array y = played<std::int64_t>(
      divide, {{greatest, lowest, -7, 7, 7, lowest, lowest, 5}, {2, 3, 2, -2, 0, -1, greatest, lowest}});
  CHECK(y.to<std::int64_t>() ==
        xt::xarray<std::int64_t>{4611686018427387903, -3074457345618258603, -4, -4, 0, lowest, -2, -1});
  constexpr auto lowest32 = std::numeric_limits<std::int32_t>::min();
  CHECK(played<std::int32_t>(divide, {{lowest32, lowest32, -1}, {-1, 0, 3}}).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{lowest32, 0, -1});
}
