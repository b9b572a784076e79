#include <limits>

#include "golden.hpp"
#include "indexed.hpp"

using namespace xtape;

namespace {
const char* const segments_file = "ops_indexing.json";
using Segments = Var (*)(const Argument&, const Var&, std::int64_t);

/// Of unsorted ids; one segment is empty, and its result is left out of gradients where it is infinite.
void check_segments(const std::string& op, Segments function, bool infinite = false) {
  check_golden(segments_file, op, 1e-11);
  const auto recorded = [&](const Var& data) {
    const Var y = function(data, index(data, {2, 0, -1, 2, 3, 0}), 4);
    return infinite ? slice(take(y, index(y, {0, 2, 3})), {}, {}) : y;
  };
  check_gradient([&](const Vars& v) { return recorded(v[0]); }, {numbers({6, 2})});
  check_vmap([&](const Vars& v) { return function(v[0], cast(v[1], Dtype::int64), 3); },
             {numbers({2, 4, 3}), as_numbers({2, 0, 1, 2, 0, 1, 2, 0}, {2, 4})});
  Tape tape;
  const Var none = tape.constant(Array(Dtype::float64, {0, 2})), ids = tape.constant(Array(Dtype::int64, {0}));
  CHECK(function(none, ids, 0).shape()[0] == 0);
  CHECK_THROWS_AS(function(none, ids, -1), ShapeError);
  CHECK_THROWS_AS(function(none, tape.constant(Array(Dtype::int64, {1})), 1), ShapeError);
}
}  // namespace

TEST_CASE("op segment_sum: gives PyTorch's values and gradients; batches") {
  check_segments("segment_sum", segment_sum);
}
TEST_CASE("op segment_mean: gives PyTorch's values and gradients; batches") {
  check_segments("segment_mean", segment_mean);
}
TEST_CASE("op segment_prod: gives PyTorch's values and gradients; batches") {
  check_segments("segment_prod", segment_prod);
}
TEST_CASE("op segment_max: gives PyTorch's values and gradients; batches") {
  check_segments("segment_max", segment_max, true);
}
TEST_CASE("op segment_min: gives PyTorch's values and gradients; batches; integers") {
  check_segments("segment_min", segment_min, true);
  Tape tape;
  const Var data = tape.constant(xt::xarray<std::int32_t>{4, -7});
  const auto most = std::numeric_limits<std::int32_t>::max();
  CHECK(value<std::int32_t>(segment_min(data, index(data, {0, 0}), 2)) == xt::xarray<std::int32_t>{-7, most});
  CHECK(value<std::int32_t>(segment_max(data, index(data, {0, 0}), 2))(1) == -most - 1);
}
TEST_CASE("op segment_softmax: gives PyTorch's values and gradients; batches; no overflow") {
  check_segments("segment_softmax", segment_softmax);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tape tape;
  const Var data = tape.constant(Doubles{1000, -infinity, 1000, -infinity});
  CHECK(value<double>(segment_softmax(data, index(data, {0, 0, 0, 1}), 2)) == Doubles{0.5, 0, 0.5, 0});
}

TEST_CASE("op nonzero_static: gives PyTorch's values; batches") {
  check_golden(segments_file, "nonzero_static");
  check_vmap([](const Vars& v) { return nonzero_static(v[0] > 0, 4); }, {numbers({3, 2, 5})});
  Tape tape;
  CHECK_THROWS_AS(nonzero_static(tape.input("x", {3}), -1), ShapeError);
}
TEST_CASE("op masked_select: gives PyTorch's values and gradients; batches") {
  check_golden(segments_file, "masked_select");
  check_gradient([](const Vars& v) { return masked_select(v[0], v[0] > 0, 5); }, {numbers({2, 4})});
  check_vmap([](const Vars& v) { return masked_select(v[0], v[1] > 0, 4, 7); },
             {numbers({3, 2, 5}), numbers({3, 5}, 1)});
  Tape tape;
  const Var x = tape.input("x", {0, 2}), mask = tape.input("mask", {2}, Dtype::boolean);
  CHECK(masked_select(x, mask, 3).shape() == Shape{3});
  CHECK_THROWS_WITH_AS(masked_select(x, tape.input("long", {2, 0, 2}, Dtype::boolean), 3),
                       "masked_select: a mask of shape (2, 0, 2) does not broadcast to x, (0, 2)", ShapeError);
  CHECK_THROWS_AS(masked_select(tape.input("i", {3}, Dtype::int32), tape.input("all", {3}, Dtype::boolean), 3, 0.5),
                  DtypeError);
}
