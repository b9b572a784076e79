#include <limits>

#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Comparison = Var (*)(const Operand&, const Operand&);

template <class T>
xt::xarray<bool> compared(Comparison op, const xt::xarray<T>& a, const xt::xarray<T>& b) {
  return played_on<T>([op](const Vars& x) { return op(x[0], x[1]); }, {a, b}).template to<bool>();
}

void check_comparison(Comparison op, const xt::xarray<bool>& less_same_greater, bool with_nan) {
  CHECK(compared<float>(op, {1, 2, 3}, {2, 2, 2}) == less_same_greater);
  CHECK(compared<double>(op, {1, 2, 3}, {2, 2, 2}) == less_same_greater);
  CHECK(compared<std::int32_t>(op, {1, 2, 3}, {2, 2, 2}) == less_same_greater);
  CHECK(compared<std::int64_t>(op, {1, 2, 3}, {2, 2, 2}) == less_same_greater);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(compared<float>(op, {nan, 1, nan}, {1, nan, nan}) == xt::xarray<bool>{with_nan, with_nan, with_nan});
  Tape tape;
  const Var x = tape.input("x", {3});
  CHECK(grad(sum(where(op(x, 2), x, 0)), {x})[0].shape() == Shape{3});
}

xt::xarray<bool> logic(Var (*op)(const Argument&, const Var&)) {
  return played<bool>([op](const Vars& x) { return op(x[0], x[1]); },
                      {{true, true, false, false}, {true, false, true, false}})
      .to<bool>();
}
}  // namespace

TEST_CASE("op equal: a == b, never with NaN") {
  check_comparison(equal, {false, true, false}, false);
  CHECK(compared<bool>(equal, {true, false}, {true, true}) == xt::xarray<bool>{true, false});
}
TEST_CASE("op not_equal: a != b, always with NaN") {
  check_comparison(not_equal, {true, false, true}, true);
}
TEST_CASE("op less: a < b") {
  check_comparison(less, {true, false, false}, false);
}
TEST_CASE("op less_equal: a <= b") {
  check_comparison(less_equal, {true, true, false}, false);
}
TEST_CASE("op greater: a > b") {
  check_comparison(greater, {false, false, true}, false);
}
TEST_CASE("op greater_equal: a >= b") {
  check_comparison(greater_equal, {false, true, true}, false);
}

TEST_CASE("op logical_and: true where both are true") {
  CHECK(logic(logical_and) == xt::xarray<bool>{true, false, false, false});
}
TEST_CASE("op logical_or: true where one or both are true") {
  CHECK(logic(logical_or) == xt::xarray<bool>{true, true, true, false});
}
TEST_CASE("op logical_not: the negation") {
  CHECK(played<bool>([](const Vars& x) { return ~x[0]; }, {{true, false}}).to<bool>() == xt::xarray<bool>{false, true});
}

TEST_CASE("comparisons broadcast and logic refuses numbers") {
  Tape tape;
  const Var a = tape.input("a", {2, 1});
  const Var b = tape.input("b", {3});
  CHECK((a < b).type() == ValueType{Dtype::boolean, {2, 3}});
  CHECK_THROWS_WITH_AS(logical_and(a, b), "logical_and: 'a' must be a bool array, got float32 (2, 1)", DtypeError);
  CHECK_THROWS_AS(static_cast<void>(a < tape.input("c", {4, 4})), ShapeError);
}
