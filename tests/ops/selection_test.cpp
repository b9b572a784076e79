#include <cmath>
#include <limits>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/index.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op where: selects, broadcasts, and keeps NaN out of the gradient") {
  Tape tape;
  const Var condition = reshape(tape.constant(listed({true, false})), {2, 1});
  const Var a = tape.parameter("a", xt::xarray<float>{1, 2, 3});
  CHECK(fast(where(condition, a, -1)).to<float>() == xt::xarray<float>{{1, 2, 3}, {-1, -1, -1}});
  const Var chosen = where(a > 1, log(a - 1), 0);  // log(0) where it is not selected
  CHECK(fast(chosen).to<float>()(0) == 0);
  const Var mask = tape.constant(xt::xarray<bool>{true, false, true});
  const Var g = grad(sum(where(mask, a, a * static_cast<double>(not_a_number))), {a})[0];
  CHECK(g.shape() == Shape{3});
  check_gradients([](const Vars& x) { return Vars{square(where(x[0] > 1, x[0], x[1]))}; },
                  {xt::xarray<double>{{0.5, 1.5, 2.5}, {3, 0.1, 0.2}}, listed<double>({7, 8, 9})});
  CHECK_THROWS_WITH_AS(where(a, a, a), "where: 'condition' must be a bool array, got float32 (3,)", DtypeError);
  for (Dtype dtype : {Dtype::float64, Dtype::int32, Dtype::int64, Dtype::boolean}) {
    const Array y = fast(where(mask, cast(a, dtype), cast(a * 0, dtype)));
    CHECK(y.dtype() == dtype);
    CHECK(fast(cast(where(mask, cast(a, dtype), cast(a * 0, dtype)), Dtype::float32)).to<float>()(1) == 0);
  }
}

TEST_CASE("op masked_fill: fills where the mask is true, no gradient there") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{{1, 2}, {3, 4}});
  const Var mask = tape.constant(xt::xarray<bool>{true, false});
  const Var y = masked_fill(x, mask, -inf);
  const float low = -static_cast<float>(inf);
  CHECK(fast(y).to<float>() == xt::xarray<float>{{low, 2}, {low, 4}});
  CHECK(evaluate(y).to<float>() == xt::xarray<float>{{low, 2}, {low, 4}});
  CHECK(fast(grad(sum(masked_fill(x, mask, not_a_number)), {x})[0]).to<float>() == xt::xarray<float>{{0, 1}, {0, 1}});
  check_gradients_at([](const Var& v) { return square(masked_fill(v, v > 1, 3)); }, {0.5, 2.0});
  check_golden("ops_pointwise.json", "masked_fill");
  const Var whole = tape.input("whole", {2}, Dtype::int32);
  CHECK_THROWS_WITH_AS(masked_fill(whole, mask, 0.5),
                       "masked_fill: value 0.5 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use a float dtype",
                       DtypeError);
  CHECK_THROWS_AS(masked_fill(whole, mask, -inf), DtypeError);
}

TEST_CASE("numbers in calls on halves are rounded once") {
  const double number = 1 + 0x1p-11 + 0x1p-40;  // in float32, half way between two float16 numbers
  Tape tape;
  const Var x = cast(tape.parameter("x", xt::xarray<double>{0, 0}), Dtype::float16);
  for (const Var& y : {masked_fill(x, x == 0, number), clip(x, number, 2), pad(x, {0}, {1}, number).at(Slice(1, 3)),
                       full(tape, {2}, number, Dtype::float16), x + number, where(x == 0, number, x)}) {
    CHECK(fast(cast(y, Dtype::float64)).to<double>()(1) == 1 + 0x1p-10);
    CHECK(evaluate(cast(y, Dtype::float64)).to<double>()(1) == 1 + 0x1p-10);
  }
}
TEST_CASE("op cast: every pair of dtypes, rounding, limits, gradients") {
  const Dtype all[] = {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16,
                       Dtype::int32,   Dtype::int64,   Dtype::int8,     Dtype::boolean};
  for (Dtype from : all)
    for (Dtype to : all) {
      INFO(name_of(from) << " to " << name_of(to));
      Tape tape;
      const Var x = tape.parameter("x", xt::xarray<double>{0, 1, -2.75, 100});
      const Var y = cast(cast(cast(x, from), to), Dtype::float64);
      xt::xarray<double> wanted{0, 1, -2.75, 100};
      for (double& each : wanted) {
        for (Dtype step : {from, to}) {
          if (step == Dtype::boolean) each = each != 0;
          if (is_integer(step) || step == Dtype::int8) each = std::trunc(each);
        }
      }
      CHECK(fast(y).to<double>() == wanted);
    }
  // Longer than a piece that is converted at once; every element has its own value.
  for (const Dtype half : {Dtype::bfloat16, Dtype::float16})
    for (const Dtype other : {Dtype::float64, Dtype::int32, Dtype::float16}) {
      INFO(name_of(half) << " and " << name_of(other));
      Tape tape;
      xt::xarray<double> numbers = xt::zeros<double>({1543});
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers(i) = static_cast<double>(i % 257) - 100;
      const Var x = cast(tape.parameter("x", numbers), other);
      CHECK(fast(cast(cast(cast(x, half), other), Dtype::float64)).to<double>() == numbers);
    }
  CHECK(played<double>([](const Vars& x) { return cast(cast(x[0], Dtype::float16), Dtype::float64); },
                       {{65519.9, 65520, -1e300, 0x1p-25, 1 + 0x1p-11}})
            .to<double>() == xt::xarray<double>{65504, inf, -inf, 0, 1});
  // Every number is rounded once, in loops of any length, also next to a number half way between two halves.
  for (const Dtype from : {Dtype::float64, Dtype::int64, Dtype::int32})
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
      INFO(name_of(from) << ", " << count);
      xt::xarray<double> numbers = xt::zeros<double>({count});
      for (std::size_t i = 0; i < count; ++i) {
        const double unit =
            std::ldexp(1.0, from == Dtype::float64 ? static_cast<int>(i % 40) - 30 : static_cast<int>(i % 8) + 14);
        const double beside = from == Dtype::float64 ? unit * 0x1p-40 : 1;
        numbers(i) = (2 * static_cast<double>(i % 4096) + 4097) * unit + (static_cast<double>(i % 3) - 1) * beside;
        if (i % 2 == 1) numbers(i) = -numbers(i);
      }
      Tape tape;
      const Var x = cast(tape.parameter("x", numbers), from);
      const auto rounded = fast(Vars{cast(cast(x, Dtype::float16), Dtype::float64),
                                     cast(cast(x, Dtype::bfloat16), Dtype::float64), cast(x, Dtype::float64)});
      for (std::size_t i = 0; i < count; ++i) {
        const double given = rounded[2].as<double>()[i];
        REQUIRE(rounded[0].as<double>()[i] == static_cast<double>(float16(given)));
        REQUIRE(rounded[1].as<double>()[i] == static_cast<double>(bfloat16(given)));
      }
    }
  const Array whole = played<double>([](const Vars& x) { return cast(x[0], Dtype::int32); },
                                     {{1e10, -1e10, not_a_number, inf, -inf, 2147483647, -2147483648.9}});
  constexpr auto most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
  CHECK(whole.to<std::int32_t>() == xt::xarray<std::int32_t>{most, least, 0, most, least, most, least});
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK(cast(x, Dtype::float32).id() == x.id());
  check_golden("ops_pointwise.json", "cast");
  // In float32, differences of a square are exact if the step and the points are powers of two.
  GradcheckOptions options;
  options.step = 0.25;
  const auto through_float = [](const Vars& v) {
    return Vars{cast(square(cast(v[0], Dtype::float32)), Dtype::float64)};
  };
  CHECK(gradcheck(through_float, {listed({0.5, 2.0})}, options).passed);
  const Var d = tape.parameter("d", xt::xarray<double>{0.5, 2});
  const Var g = grad(sum(square(cast(d, Dtype::float32))), {d})[0];
  CHECK(fast(g).to<double>() == xt::xarray<double>{1, 4});
}

TEST_CASE("op masked_fill: the value of integers is exact, or an error") {
  constexpr std::int64_t odd = 9007199254740993;  // 2^53 + 1, which a double cannot represent
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<std::int64_t>{1, 2});
  const Var filled = masked_fill(x, x > 1, odd);
  CHECK(fast(filled).to<std::int64_t>() == xt::xarray<std::int64_t>{1, odd});
  CHECK(evaluate(filled).to<std::int64_t>() == xt::xarray<std::int64_t>{1, odd});
  const Var i = tape.input("i", {2}, Dtype::int32);
  CHECK_THROWS_WITH_AS(masked_fill(i, i > 1, 3000000000),
                       "masked_fill: value 3000000000 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use int64",
                       DtypeError);
}
