#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
void check_list(const Var& x, Dtype dtype, const std::vector<double>& wanted) {
  const Array got = evaluate(x);
  CHECK(got.dtype() == dtype);
  REQUIRE(got.shape() == Shape{static_cast<std::int64_t>(wanted.size())});
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got(i) == wanted[i]);
}
}  // namespace

TEST_CASE("arange and linspace: elements, dtypes and ends") {
  Tape tape(Dtype::float64);
  check_list(arange(tape, 3), Dtype::int64, {0, 1, 2});
  check_list(arange(tape, 2.5), Dtype::float64, {0, 1, 2});
  check_list(arange(tape, 5, -1, -2), Dtype::int64, {5, 3, 1});
  check_list(arange(tape, 0, 1, 0.25), Dtype::float64, {0, 0.25, 0.5, 0.75});
  check_list(arange(tape, 1, 4, 1, Dtype::float32), Dtype::float32, {1, 2, 3});
  check_list(arange(tape, 3, 3), Dtype::int64, {});
  check_list(arange(tape, 3, 0), Dtype::int64, {});
  check_list(linspace(tape, 0, 1, 5), Dtype::float64, {0, 0.25, 0.5, 0.75, 1});
  check_list(linspace(tape, 2, 7, 1), Dtype::float64, {2});
  check_list(linspace(tape, 2, 7, 0), Dtype::float64, {});
  CHECK(evaluate(linspace(tape, 0.1, 0.7, 11))(10) == 0.7);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const Array ends = evaluate(arange(tape, least, most, most));  // steps wider than half of the range
  REQUIRE(ends.shape() == Shape{3});
  CHECK(ends.as<std::int64_t>()[0] == least);
  CHECK(ends.as<std::int64_t>()[1] == -1);
  CHECK(ends.as<std::int64_t>()[2] == most - 1);
  const Array down = evaluate(arange(tape, most, least, least));
  REQUIRE(down.shape() == Shape{2});
  CHECK(down.as<std::int64_t>()[1] == -1);
  const Array far = evaluate(arange(tape, most - 3, most));  // integers that no double has
  REQUIRE(far.shape() == Shape{3});
  CHECK(far.as<std::int64_t>()[2] == most - 1);
}

TEST_CASE("arange and linspace: errors, after which nothing is recorded") {
  Tape tape;
  CHECK_THROWS_AS(arange(tape, 0, 3, 0), Error);
  CHECK_THROWS_AS(arange(tape, 0, 1e300, 1), Error);
  CHECK_THROWS_AS(arange(tape, std::numeric_limits<std::int64_t>::max()), Error);
  CHECK_THROWS_AS(arange(tape, 0, -std::numeric_limits<double>::infinity(), -1), Error);
  CHECK_THROWS_AS(arange(tape, 0, std::numeric_limits<double>::quiet_NaN()), Error);
  CHECK_THROWS_AS(arange(tape, 0, 300, 1, Dtype::int8), DtypeError);
  CHECK_THROWS_AS(linspace(tape, 0, 1, 3, Dtype::int32), DtypeError);
  CHECK_THROWS_AS(linspace(tape, 0, 1, -1), Error);
  CHECK_THROWS_AS(linspace(tape, 0, 1, std::int64_t{1} << 62), Error);
  CHECK(tape.size() == 0);
}
