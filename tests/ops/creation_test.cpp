#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// Two rows of two tokens with pasts of 0 and 3 tokens.
struct Predicting {
  Tape tape{Mode::predict};
  Var tokens = tape.input("tokens", {2, 2}, Dtype::int64);
  Var source = tape.input("source", {2, 2}, Dtype::int64);
  Var past = tape.input("past", {2}, Dtype::int64);
  Predicting() { tape.set_past(tokens, past, 5); }
  Array played(const Var& var) const { return evaluate(var, {{past, xt::xarray<std::int64_t>{0, 3}}}); }
};
}  // namespace

TEST_CASE("op zeros: zeros of every dtype") {
  Tape tape;
  CHECK(fast(zeros(tape, {2, 2})).to<float>() == xt::xarray<float>{{0, 0}, {0, 0}});
  for (Dtype dtype : {Dtype::float64, Dtype::int32, Dtype::int64, Dtype::boolean}) {
    const Array y = fast(zeros(tape, {3}, dtype));
    CHECK(y.dtype() == dtype);
    CHECK(y.shape() == Shape{3});
  }
  const Var x = tape.input("x", {4, 0}, Dtype::float64);
  CHECK(zeros_like(x).type() == x.type());
  CHECK(fast(zeros(tape, {})).to<float>()() == 0);
}

TEST_CASE("op ones: ones of every dtype, also by the expansion") {
  Tape tape;
  const Array y = fast(ones(tape, {100000}, Dtype::int32));
  for (std::int64_t i = 0; i < 100000; ++i) REQUIRE(y.as<std::int32_t>()[i] == 1);
  CHECK(evaluate(ones(tape, {2}, Dtype::boolean)).to<bool>() == xt::xarray<bool>{true, true});
  CHECK(fast(ones_like(tape.input("x", {2}, Dtype::float64))).to<double>() == xt::xarray<double>{1, 1});
}

TEST_CASE("op full: one value, golden, refusals") {
  Tape tape;
  CHECK(fast(full(tape, {2}, -1.5, Dtype::float64)).to<double>() == xt::xarray<double>{-1.5, -1.5});
  CHECK(evaluate(full(tape, {2}, 7, Dtype::int64)).to<std::int64_t>() == xt::xarray<std::int64_t>{7, 7});
  check_golden("ops_pointwise.json", "full");
  CHECK_THROWS_WITH_AS(full(tape, {2, -1}, 0), "full: sizes must not be negative, got (2, -1)", ShapeError);
  CHECK_THROWS_AS(full(tape, {1 << 30, 1 << 30, 1 << 30}, 0), ShapeError);
}

TEST_CASE("op iota: counts along an axis") {
  Tape tape;
  CHECK(fast(iota(tape, {2, 3}, 1)).to<std::int64_t>() == xt::xarray<std::int64_t>{{0, 1, 2}, {0, 1, 2}});
  CHECK(fast(iota(tape, {2, 3}, -2, Dtype::float32)).to<float>() == xt::xarray<float>{{0, 0, 0}, {1, 1, 1}});
  CHECK_THROWS_WITH_AS(iota(tape, {2}, 1), "iota: axis 1 is out of range for an array of 1 axis", ShapeError);
  CHECK_THROWS_AS(iota(tape, {2}, 0, Dtype::boolean), DtypeError);
}

TEST_CASE("op eye: ones on the diagonal, golden") {
  Tape tape;
  const xt::xarray<double> wanted{{1, 0}, {0, 1}, {0, 0}};
  CHECK(fast(eye(tape, 3, 2, Dtype::float64)).to<double>() == wanted);
  CHECK(evaluate(eye(tape, 3, 2, Dtype::float64)).to<double>() == wanted);
  CHECK(eye(tape, 3, -1).shape() == Shape{3, 3});
  check_golden("ops_pointwise.json", "eye");
  CHECK_THROWS_AS(eye(tape, -3, 2), ShapeError);
}

TEST_CASE("op positions: 0, 1, 2 … along an axis of the tokens") {
  Tape tape;
  const Var tokens = tape.input("tokens", {5, 3}, Dtype::int64);
  CHECK(fast(positions(tokens)).to<std::int64_t>() == xt::xarray<std::int64_t>{0, 1, 2});
  CHECK(positions(tokens, 0).type() == ValueType{Dtype::int64, {5}});
  CHECK_THROWS_AS(positions(tokens, 2), ShapeError);
  Predicting predicting;
  CHECK(predicting.played(positions(predicting.tokens)).to<std::int64_t>() == xt::xarray<std::int64_t>{{0, 1}, {3, 4}});
  CHECK(positions(predicting.source).type() == ValueType{Dtype::int64, {2}});  // does not depend on the tokens
  CHECK_THROWS_AS(positions(predicting.tokens, 0), ShapeError);
  CHECK_THROWS_AS(positions(transpose(concat({predicting.tokens, predicting.tokens}, 1))), ShapeError);
}

TEST_CASE("op causal_mask: true where the key comes after the query") {
  Tape tape;
  const Var tokens = tape.input("tokens", {2, 3}, Dtype::int32);
  const xt::xarray<bool> wanted{{false, true, true}, {false, false, true}, {false, false, false}};
  CHECK(fast(causal_mask(tokens)).to<bool>() == wanted);
  CHECK(causal_mask(tokens, 0).shape() == Shape{2, 2});
  Predicting predicting;
  const xt::xarray<bool> first{{false, true, true, true, true}, {false, false, true, true, true}};
  const xt::xarray<bool> second{{false, false, false, false, true}, {false, false, false, false, false}};
  const auto mask = predicting.played(causal_mask(predicting.tokens)).to<bool>();
  REQUIRE(mask.dimension() == 4);
  for (std::size_t query = 0; query < 2; ++query)
    for (std::size_t key = 0; key < 5; ++key) {
      CHECK(mask(0, 0, query, key) == first(query, key));
      CHECK(mask(1, 0, query, key) == second(query, key));
    }
  CHECK(causal_mask(predicting.source).shape() == Shape{2, 2});
}

TEST_CASE("op causal_mask: with a window, also true where the key is a window or more before the query") {
  Tape tape;
  const Var tokens = tape.input("tokens", {2, 4}, Dtype::int32);
  Predicting predicting;  // queries at 0 and 1, and at 3 and 4, of 5 keys
  const std::vector<std::int64_t> first_query{0, 3};
  for (const std::int64_t window : {1, 2, 3, 4, 5, 100}) {
    CAPTURE(window);
    const auto hidden = [&](std::int64_t query, std::int64_t key) { return key > query || key <= query - window; };
    const auto mask = fast(causal_mask(tokens, -1, window)).to<bool>();
    for (std::int64_t query = 0; query < 4; ++query)
      for (std::int64_t key = 0; key < 4; ++key) CHECK(mask(query, key) == hidden(query, key));
    const auto later = predicting.played(causal_mask(predicting.tokens, -1, window)).to<bool>();
    for (std::int64_t row = 0; row < 2; ++row)
      for (std::int64_t query = 0; query < 2; ++query)
        for (std::int64_t key = 0; key < 5; ++key)
          CHECK(later(row, 0, query, key) == hidden(first_query[row] + query, key));
  }
  CHECK_THROWS_WITH_AS(causal_mask(tokens, -1, -2),
                       doctest::Contains("window must be at least 1, or 0 for no window; got -2"), Error);
}

TEST_CASE("op full: integers are exact, and the error for a value that does not fit names a dtype that does") {
  Tape tape;
  constexpr std::int64_t odd = 9007199254740993;  // 2^53 + 1, which a double cannot represent
  CHECK(*fast(full(tape, {}, odd, Dtype::int64)).as<std::int64_t>() == odd);
  CHECK(*evaluate(full(tape, {}, odd, Dtype::int64)).as<std::int64_t>() == odd);
  CHECK(*fast(full(tape, {}, 3000000000, Dtype::int64)).as<std::int64_t>() == 3000000000);
  CHECK(*fast(full(tape, {}, 2.0, Dtype::int32)).as<std::int32_t>() == 2);
  CHECK_THROWS_WITH_AS(full(tape, {1}, 3000000000, Dtype::int32),
                       "full: value 3000000000 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use int64",
                       DtypeError);
  CHECK_THROWS_WITH_AS(full(tape, {1}, 2.5, Dtype::int32),
                       "full: value 2.5 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use a float dtype",
                       DtypeError);
  CHECK_THROWS_WITH_AS(full(tape, {1}, 1e19, Dtype::int64),
                       "full: value 1e+19 does not fit int64, "
                       "which holds the integers from -9223372036854775808 to 9223372036854775807: use a float dtype",
                       DtypeError);
  CHECK_THROWS_WITH_AS(full(tape, {1}, 2, Dtype::boolean),
                       "full: value 2 does not fit bool, "
                       "which holds 0 and 1: use int64",
                       DtypeError);
  CHECK_THROWS_AS(full(tape, {1}, std::numeric_limits<double>::quiet_NaN(), Dtype::int64), DtypeError);
  CHECK_THROWS_AS(full(tape, {1}, std::numeric_limits<std::uint64_t>::max(), Dtype::int64), DtypeError);
}

TEST_CASE("op iota: an index that its dtype cannot hold is an error") {
  Tape tape;
  CHECK_THROWS_WITH_AS(iota(tape, {3000000000}, 0, Dtype::int32),
                       "iota: the last index 2999999999 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use int64",
                       DtypeError);
}
