#include "xtape/ops/order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "constants.hpp"
#include "golden.hpp"
#include "mapped_rows.hpp"
#include "play.hpp"

using namespace xtape;

namespace {
/// Numbers with equal ones among them.
template <class T>
xt::xarray<T> scattered(std::size_t n) {
  xt::xarray<T> x = xt::xarray<T>::from_shape({n});
  for (std::size_t i = 0; i < n; ++i) x(i) = static_cast<T>((i * 7919 % 211) * (i % 2 == 0 ? 1 : -1));
  return x;
}
/// Compares sort with std::stable_sort, in both directions and for other sizes.
template <class T>
void check_sorts() {
  for (const std::size_t n : {0, 1, 2, 33, 1000})
    for (const bool descending : {false, true}) {
      const xt::xarray<T> x = scattered<T>(n);
      std::vector<std::int64_t> wanted(n);
      std::iota(wanted.begin(), wanted.end(), 0);
      std::stable_sort(wanted.begin(), wanted.end(), [&](std::int64_t a, std::int64_t b) {
        const T p = x(static_cast<std::size_t>(a)), q = x(static_cast<std::size_t>(b));
        return descending ? p > q : p < q;
      });
      Tape tape;
      const auto [values, indices] = sort(tape.parameter("x", ArrayView(x)), 0, descending);
      const Array found = fast(values), at = fast(indices);
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(at.as<std::int64_t>()[i] == wanted[i]);
        REQUIRE(!(found.as<T>()[i] != x(static_cast<std::size_t>(wanted[i]))));
      }
    }
}
}  // namespace

TEST_CASE("op sort: values, equal elements, every dtype, gradients, NaN and infinities, threads") {
  check_golden("ops_order.json", "sort", 1e-12);
  check_sorts<double>();
  check_sorts<float>();
  check_sorts<std::int32_t>();
  check_sorts<std::int64_t>();
  check_gradients_on([](const Var& x) { return square(sort(x, 1, true).first); }, points);
  const auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  CHECK(
      played<std::int64_t>([](const Vars& x) { return sort(x[0]).first; }, {{3, most, -1, least}}).to<std::int64_t>() ==
      xt::xarray<std::int64_t>{least, -1, 3, most});
  CHECK(played<double>([](const Vars& x) { return sort(x[0]).second; }, {{not_a_number, inf, 0.0, -0.0, -inf}})
            .to<std::int64_t>() == xt::xarray<std::int64_t>{4, 2, 3, 1, 0});
  Tape tape;
  const Var many = sort(broadcast_to(tape.constant(scattered<double>(300)), {20, 300})).second;
  CHECK(fast(many, 1).to<std::int64_t>() == fast(many, 3).to<std::int64_t>());
  CHECK_THROWS_AS(sort(tape.input("s", {})), ShapeError);
  CHECK_THROWS_AS(sort(tape.input("b", {2}, Dtype::boolean)), DtypeError);
}
TEST_CASE("op argsort: values, batches") {
  check_golden("ops_order.json", "argsort");
  check_mapped_rows([](const Vars& x) { return argsort(x[0], 0, true); }, {points});
}
TEST_CASE("op top_k: along any axis, the smallest, gradients") {
  check_golden("ops_order.json", "top_k");
  check_gradients_on([](const Var& x) { return square(top_k(x, 2, 1, false).first); }, points);
  check_mapped_rows([](const Vars& x) { return top_k(x[0], 1, 0, false).first; }, {points});
}
TEST_CASE("op kthvalue: values, gradients, errors") {
  check_golden("ops_order.json", "kthvalue");
  check_gradients_on([](const Var& x) { return square(kthvalue(x, 2, -1).first); }, points);
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(kthvalue(x, 0, 1),
                       "kthvalue: k must be between 1 and the size of axis 1, got k 0 and shape (2, 3)", ShapeError);
  CHECK_THROWS_AS(kthvalue(x, 3, 0), ShapeError);
}
TEST_CASE("op median: values, gradients, integers, errors") {
  check_golden("ops_order.json", "median");
  check_gradients_on([](const Var& x) { return square(median(x, {0, 2})); }, points);
  CHECK(played<std::int32_t>([](const Vars& x) { return median(x[0]); }, {{7, -3, 5, 1}}).as<std::int32_t>()[0] == 1);
  check_mapped_rows([](const Vars& x) { return median(x[0], {0}); }, {points});
  Tape tape;
  CHECK_THROWS_AS(median(tape.input("x", {0})), ShapeError);
}
TEST_CASE("op nanmedian: values, gradients, integers") {
  check_golden("ops_order.json", "nanmedian");
  check_gradients_on([](const Var& x) { return square(nanmedian(x, {1}, true)); }, points);
  CHECK(played<std::int64_t>([](const Vars& x) { return nanmedian(x[0]); }, {{7, -3, 5}}).as<std::int64_t>()[0] == 5);
}
TEST_CASE("op quantile: values, gradients of x and q, infinities, errors") {
  check_golden("ops_order.json", "quantile");
  check_gradients(
      [](const Vars& v) {
        return Vars{square(quantile(v[0], v[1], {0, 2}))};
      },
      {points, listed<double>({0.13, 0.52, 0.9})});
  check_gradients([](const Vars& v) { return Vars{square(quantile(v[0], 0.3, {1}, true))}; }, {points});
  CHECK(played<double>([](const Vars& x) { return quantile(x[0], 1.0); }, {{1, inf}}).as<double>()[0] == inf);
  check_mapped_rows([](const Vars& x) { return quantile(x[0], x[1], {0}); }, {points, {{0.25, 0.5}, {0.75, 1.0}}});
  Tape tape;
  const Var x = tape.constant(points);
  CHECK_THROWS_WITH_AS(fast(quantile(x, 1.5)), "quantile: the condition is false at []", Error);
  CHECK_THROWS_WITH_AS(
      quantile(x, 0.5, {}, false, "cubic"),
      "quantile: interpolation must be 'linear', 'lower', 'higher', 'nearest' or 'midpoint', got 'cubic'", Error);
  CHECK_THROWS_AS(quantile(x, tape.constant(points)), ShapeError);
}
TEST_CASE("op nanquantile: values, gradients") {
  check_golden("ops_order.json", "nanquantile");
  check_gradients([](const Vars& v) { return Vars{square(nanquantile(v[0], v[1], {2}))}; },
                  {points, listed<double>({0.13, 0.52})});
}
