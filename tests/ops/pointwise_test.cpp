#include <cmath>
#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
void check_test(const char* op, const xt::xarray<bool>& wanted) {
  check_golden("ops_elementwise.json", op, 1e-12, 0);
  const float inf = std::numeric_limits<float>::infinity();
  const auto record = [op](const Vars& x) { return apply(builtin_ops().at(op), {x[0]})[0]; };
  CHECK(played<float>(record, {{1, inf, -inf, std::nanf(""), std::numeric_limits<float>::max()}}).to<bool>() == wanted);
}
}  // namespace

TEST_CASE("op isnan: values") {
  check_test("isnan", {false, false, false, true, false});
}
TEST_CASE("op isinf: values") {
  check_test("isinf", {false, true, true, false, false});
}
TEST_CASE("op isfinite: values") {
  check_test("isfinite", {true, false, false, false, true});
}
TEST_CASE("op logical_xor: values") {
  check_golden("ops_elementwise.json", "logical_xor", 1e-12, 0);
  Tape tape;
  const Var x = tape.input("x", {1});
  CHECK_THROWS_AS(logical_xor(x, x), DtypeError);
}
TEST_CASE("op nan_to_num: values, gradients, the greatest number of each dtype") {
  check_golden("ops_elementwise.json", "nan_to_num", 1e-12, 0);
  check_gradients_at([](const Var& x) { return square(nan_to_num(x)); }, {-0.7, 0.4, 2});
  const float inf = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  CHECK(
      played<float>([](const Vars& x) { return nan_to_num(x[0], 1e300); }, {{inf, -inf, std::nanf("")}}).to<float>() ==
      xt::xarray<float>{most, -most, inf});
  CHECK(played<float>([](const Vars& x) { return nan_to_num(x[0], 2, 1e300, -3); }, {{inf, -inf, std::nanf("")}})
            .to<float>() == xt::xarray<float>{most, -3, 2});
  for (const auto& [half, greatest] : {std::pair(Dtype::bfloat16, 0x1.FEp127f), std::pair(Dtype::float16, 65504.0f)}) {
    Tape tape;
    const Var narrow = cast(tape.parameter("x", xt::xarray<float>{inf, -inf}), half);
    const Array y = fast(cast(nan_to_num(narrow), Dtype::float32));
    CHECK(y.to<float>() == xt::xarray<float>{greatest, -greatest});
  }
}
TEST_CASE("op lerp: values, gradients, exact at both ends") {
  check_golden("ops_elementwise.json", "lerp", 1e-12, 0);
  check_gradients([](const Vars& x) { return Vars{lerp(x[0], x[1], x[2])}; },
                  {{{0.3, -1.2, 2.0}, {1.0, 0.4, -0.7}}, {0.6, 1.5, -0.8}, {0.2}});
  const Array y =
      played<float>([](const Vars& x) { return lerp(x[0], x[1], x[2]); }, {{1e8f, 1e8f}, {0.1f, 0.1f}, {1, 0}});
  CHECK(y.to<float>() == xt::xarray<float>{0.1f, 1e8f});
}
