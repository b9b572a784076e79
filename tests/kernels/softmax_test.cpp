#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "dense_call.hpp"
#include "kernels/reductions/cross_entropy.hpp"
#include "kernels/reductions/reduce.hpp"
#include "xtape/error.hpp"

using namespace xtape;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> random_rows(std::int64_t count, unsigned seed, double scale = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(normal(bits));
  return values;
}

/// The element `i` of the row that is at (outer, inner).
std::size_t place(const Middle& extent, std::int64_t outer, std::int64_t i, std::int64_t inner) {
  return static_cast<std::size_t>((outer * extent.size + i) * extent.inner + inner);
}
}  // namespace

TEST_CASE_TEMPLATE("softmax along any axis equals that of a plain loop, also in place, for any number of threads", T,
                   float, double) {
  for (const Middle extent : {Middle{3, 5, 1},
                              {40, 1024, 1},
                              {2, 7, 3},
                              {3, 33, 40},
                              {1, 100, 17},
                              {4, 1, 2},
                              {2, 0, 3},
                              {3, 0, 1},
                              {3, 2, 1},  // these four fill a register of some processors
                              {3, 4, 1},
                              {3, 8, 1},
                              {3, 16, 1},
                              {0, 4, 1},
                              {1, 50257, 1}})
    for (int threads : {1, 3}) {
      const std::int64_t count = extent.outer * extent.size * extent.inner;
      const std::vector<T> x = random_rows<T>(count, 5, 4);
      std::vector<T> y = x;
      const ValueType type{dtype_of<T>(), {extent.outer, extent.size, extent.inner}};
      const DenseCall call({type}, {type}, {{"axis", std::int64_t{1}}}, threads);
      call.run("softmax", {y.data()}, {y.data()});
      std::vector<T> log_y(x.size());
      call.run("log_softmax", {x.data()}, {log_y.data()});
      for (std::int64_t outer = 0; outer < extent.outer; ++outer)
        for (std::int64_t inner = 0; inner < extent.inner; ++inner) {
          double total = 0;
          for (std::int64_t i = 0; i < extent.size; ++i) total += std::exp(double{x[place(extent, outer, i, inner)]});
          for (std::int64_t i = 0; i < extent.size; ++i) {
            const std::size_t at = place(extent, outer, i, inner);
            REQUIRE(y[at] == doctest::Approx(std::exp(double{x[at]}) / total).epsilon(2e-6));
            REQUIRE(log_y[at] == doctest::Approx(x[at] - std::log(total)).epsilon(2e-6));
          }
        }
    }
}

TEST_CASE("softmax propagates NaN, and masks its rows one by one") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float hidden = -std::numeric_limits<float>::infinity();
  const std::vector<float> x = {hidden, hidden, hidden, 1, hidden, 1, hidden, nan, hidden, 3e38f, -3e38f, 3e38f};
  std::vector<float> y(12);
  const ValueType type{Dtype::float32, {4, 3}};
  DenseCall({type}, {type}, {{"axis", std::int64_t{-1}}}).run("softmax", {x.data()}, {y.data()});
  const std::vector<float> first = {0, 0, 0, 0.5f, 0, 0.5f};
  CHECK(std::vector<float>(y.begin(), y.begin() + 6) == first);
  for (std::size_t i = 6; i < 9; ++i) CHECK(std::isnan(y[i]));
  CHECK(y[9] == 0.5f);
  CHECK(y[10] == 0);
}

TEST_CASE("masked_softmax reads x and mask through any strides") {
  const std::int64_t b = 2, q = 3, k = 19;
  const std::vector<double> x = random_rows<double>(b * q * k, 6);
  const bool causal[3] = {true, false, false};
  bool mask[19 * 2];
  for (int i = 0; i < 38; ++i) mask[i] = i % 3 == 0;
  const Layout dense = Layout::dense({b, q, k});
  const Layout swapped{{b, q, k}, {q * k, 1, q}, 0};  // x in memory as [b, k, q]
  for (const Layout& layout : {dense, swapped})
    for (const Strides& strides : {Strides{0, 0, 1}, Strides{0, 0, 2}, Strides{0, 1, 0}, Strides{19, 0, 1}}) {
      const bool* which = strides == Strides{0, 1, 0} ? causal : mask;
      std::vector<double> y(x.size());
      masked_softmax<double>(x.data(), layout, 0.4, which, {{b, q, k}, strides, 0}, y.data(), 2);
      for (std::int64_t r = 0; r < b * q; ++r) {
        std::vector<double> row;
        double total = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          const bool hidden = which[r / q * strides[0] + r % q * strides[1] + i * strides[2]];
          const std::int64_t at = r / q * layout.strides[0] + r % q * layout.strides[1] + i * layout.strides[2];
          row.push_back(hidden ? 0 : std::exp(x[static_cast<std::size_t>(at)] * 0.4));
          total += row.back();
        }
        for (std::int64_t i = 0; i < k; ++i)
          REQUIRE(y[static_cast<std::size_t>(r * k + i)] ==
                  doctest::Approx(total == 0 ? 0 : row[static_cast<std::size_t>(i)] / total).epsilon(1e-14));
      }
    }
}

TEST_CASE("cross_entropy of rows longer than a block, and of a row of -inf") {
  CrossEntropy call;
  call.rows = 3;
  call.classes = 5001;
  std::vector<double> x = random_rows<double>(3 * 5001, 7, 30);
  std::fill(x.begin() + 2 * 5001, x.end(), -infinity);
  const std::vector<std::int64_t> targets = {17, 5000, 3};
  std::vector<double> lse(3), losses(3), gradient(x.size());
  double sum = 0;
  std::int64_t count = 0;
  call.rows = 2;
  row_losses(x.data(), targets.data(), call, losses.data(), lse.data(), 2);
  sum_losses(losses.data(), targets.data(), call, &sum, &count);
  double expected = 0;
  for (std::size_t r = 0; r < 2; ++r) {
    double top = -infinity, total = 0;
    for (std::size_t i = 0; i < 5001; ++i) top = std::max(top, x[r * 5001 + i]);
    for (std::size_t i = 0; i < 5001; ++i) total += std::exp(x[r * 5001 + i] - top);
    CHECK(lse[r] == doctest::Approx(top + std::log(total)).epsilon(1e-13));
    expected += top + std::log(total) - x[r * 5001 + static_cast<std::size_t>(targets[r])];
  }
  CHECK(sum == doctest::Approx(expected).epsilon(1e-13));
  CHECK(count == 2);

  call.rows = 3;
  row_losses(x.data(), targets.data(), call, losses.data(), lse.data(), 2);
  sum_losses(losses.data(), targets.data(), call, &sum, &count);
  CHECK(sum == infinity);
  CHECK(lse[2] == 0);
  cross_entropy_grad<double, std::int64_t>(x.data(), targets.data(), lse.data(), 1, call, gradient.data(), 2);
  for (std::size_t i = 0; i < 5001; ++i) REQUIRE(gradient[2 * 5001 + i] == (i == 3 ? -1 : 0));
}

TEST_CASE("cross_entropy refuses a target that is not a class") {
  CrossEntropy call;
  call.rows = 2;
  call.classes = 4;
  call.ignore = -1;
  for (std::int32_t wrong : {4, -2, 1000000000}) {
    const std::vector<std::int32_t> targets = {-1, wrong};
    const std::string message = "cross_entropy: target " + std::to_string(wrong) +
                                " (element 1) is neither in [0, 4), the classes of the logits, nor -1, the ignored one";
    CHECK_THROWS_WITH_AS(check_targets(targets.data(), call), message.c_str(), Error);
  }
  CHECK_NOTHROW(check_targets(std::vector<std::int32_t>{-1, 3}.data(), call));
}
