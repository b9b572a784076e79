#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "dense_call.hpp"

using namespace xtape;

namespace {
template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed, double mean = 0) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal(mean, 1);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(bits));
  return values;
}

template <class T>
struct NormGradient {
  std::vector<T> dx, dweight, dbias;
};

template <class T>
NormGradient<T> gradient(std::int64_t rows, std::int64_t length, bool centred, int threads) {
  const auto count = static_cast<std::size_t>(rows * length);
  const auto n = static_cast<std::size_t>(length);
  const std::vector<T> x = random_values<T>(count, 1, 3);
  const std::vector<T> dy = random_values<T>(count, 2);
  const std::vector<T> weight = random_values<T>(n, 3);
  std::vector<T> y(count), mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  NormGradient<T> result{std::vector<T>(count), std::vector<T>(n), std::vector<T>(centred ? n : 0)};
  const ValueType all{dtype_of<T>(), {rows, length}}, of_rows{dtype_of<T>(), {rows}},
      of_places{dtype_of<T>(), {length}};
  const Attributes epsilon{{"epsilon", 1e-5}}, bias{{"bias", true}};
  if (centred) {
    DenseCall({all, of_places}, {all, of_rows, of_rows}, epsilon, threads)
        .run("layer_norm", {x.data(), weight.data()}, {y.data(), mean.data(), rstd.data()});
    DenseCall({all, all, of_rows, of_rows, of_places}, {all, of_places, of_places}, bias, threads)
        .run("layer_norm_grad", {dy.data(), x.data(), mean.data(), rstd.data(), weight.data()},
             {result.dx.data(), result.dweight.data(), result.dbias.data()});
  } else {
    DenseCall({all, of_places}, {all, of_rows}, epsilon, threads)
        .run("rms_norm", {x.data(), weight.data()}, {y.data(), rstd.data()});
    DenseCall({all, all, of_rows, of_places}, {all, of_places}, {}, threads)
        .run("rms_norm_grad", {dy.data(), x.data(), rstd.data(), weight.data()},
             {result.dx.data(), result.dweight.data()});
  }
  return result;
}
}  // namespace

TEST_CASE("the gradients of normalisation have the same bits for any number of threads") {
  for (bool centred : {true, false})
    for (std::int64_t rows : {1, 7, 100, 700}) {
      const NormGradient<float> one = gradient<float>(rows, 67, centred, 1);
      for (int threads : {2, 3, 5}) {
        const NormGradient<float> many = gradient<float>(rows, 67, centred, threads);
        CHECK(one.dx == many.dx);
        CHECK(one.dweight == many.dweight);
        CHECK(one.dbias == many.dbias);
      }
    }
}

TEST_CASE("float32 normalisation and its gradient agree with float64") {
  for (bool centred : {true, false}) {
    const NormGradient<float> single = gradient<float>(300, 130, centred, 2);
    const NormGradient<double> twice = gradient<double>(300, 130, centred, 2);
    // The float32 inputs are rounded, so they differ from the float64 inputs.
    for (std::size_t i = 0; i < single.dx.size(); ++i)
      REQUIRE(single.dx[i] == doctest::Approx(twice.dx[i]).epsilon(2e-5));
    for (std::size_t i = 0; i < single.dweight.size(); ++i)
      CHECK(single.dweight[i] == doctest::Approx(twice.dweight[i]).epsilon(2e-5));
    for (std::size_t i = 0; i < single.dbias.size(); ++i)
      CHECK(single.dbias[i] == doctest::Approx(twice.dbias[i]).epsilon(2e-5));
  }
}

TEST_CASE("layer_norm of numbers far from zero is accurate, in rows of every length") {
  for (std::int64_t length : {1, 2, 15, 16, 17, 64, 65, 2047, 2048, 5000}) {
    const std::vector<float> x = random_values<float>(static_cast<std::size_t>(length), 4, 1000);
    std::vector<float> y(x.size());
    float mean = 0, rstd = 0;
    const ValueType row{Dtype::float32, {1, length}}, one{Dtype::float32, {1}};
    DenseCall({row}, {row, one, one}, {{"epsilon", 1e-5}}).run("layer_norm", {x.data()}, {y.data(), &mean, &rstd});
    double exact_mean = 0, variance = 0;
    for (float value : x) exact_mean += value / static_cast<double>(length);
    for (float value : x) variance += (value - exact_mean) * (value - exact_mean) / static_cast<double>(length);
    const double exact_rstd = 1 / std::sqrt(variance + 1e-5);
    CAPTURE(length);
    CHECK(mean == doctest::Approx(exact_mean).epsilon(1e-7));
    for (std::size_t i = 0; i < x.size(); ++i)
      REQUIRE(std::abs(y[i] - (x[i] - exact_mean) * exact_rstd) < 1e-4 * exact_rstd + 1e-6);
  }
}
