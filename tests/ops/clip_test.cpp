#include <cmath>
#include <limits>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op clip: limits values, passes the gradient inside the bounds, refuses low > high") {
  CHECK(played<float>([](const Vars& x) { return clip(x[0], -1, inf); }, {{-3, 0.5f, HUGE_VALF}}).to<float>() ==
        xt::xarray<float>{-1, 0.5f, HUGE_VALF});
  CHECK(std::isnan(played<float>([](const Vars& x) { return clip(x[0], 0, 1); }, {{NAN}}).as<float>()[0]));
  check_gradients_at([](const Var& x) { return square(clip(x, -1, 1)); }, {-3.0, 0.5, 2.0});
  check_golden("ops_pointwise.json", "clip");
  Tape tape;
  const Var at_bounds = tape.parameter("at_bounds", listed<float>({-1, 1, 2}));
  CHECK(fast(grad(sum(clip(at_bounds, -1, 1)), {at_bounds})[0]).to<float>() == listed<float>({1, 1, 0}));
  const Var x = tape.input("x", {2});
  CHECK_THROWS_WITH_AS(clip(x, 2, 1), "clip: low must not be above high, got low 2 and high 1", Error);
}

TEST_CASE("op clip: integers stay exact with bounds of any size") {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min(), greatest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t odd = 9007199254740993;  // 2^53 + 1, which a double cannot represent
  const auto clipped = [&](const Literal& low, const Literal& high) {
    return played<std::int64_t>([&](const Vars& x) { return clip(x[0], low, high); }, {{lowest, -5, odd, greatest}})
        .to<std::int64_t>();
  };
  using Row = xt::xarray<std::int64_t>;
  CHECK(clipped(-inf, inf) == Row{lowest, -5, odd, greatest});
  CHECK(clipped(-odd, odd) == Row{-odd, -5, odd, odd});
  CHECK(clipped(0, 1e300) == Row{0, 0, odd, greatest});
  CHECK(clipped(odd, greatest) == Row{odd, odd, odd, greatest});
  CHECK(played<std::int32_t>([](const Vars& x) { return clip(x[0], -3000000000, 7); }, {{-9, 9}}).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{-9, 7});
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<std::int64_t>{1, odd});
  CHECK(evaluate(clip(x, odd - 1, inf)).to<std::int64_t>() == Row{odd - 1, odd});  // by its expansion
  const Var i = tape.input("i", {2}, Dtype::int32);
  CHECK_THROWS_WITH_AS(clip(i, 0.5, 2),
                       "clip: low 0.5 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use a float dtype",
                       DtypeError);
  CHECK_THROWS_WITH_AS(clip(i, 3000000000, inf),
                       "clip: low 3000000000 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use int64",
                       DtypeError);
}
