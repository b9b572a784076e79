/// Compares an op's kernel with its expansion.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {

inline xt::xarray<double> as_doubles(const Array& array) {
  if (array.dtype() == Dtype::float64) return array.to<double>();
  if (array.dtype() == Dtype::float32) return xt::xarray<double>(array.to<float>());
  return xt::xarray<double>(array.to<std::int64_t>());
}

/// Returns the values of all `outputs`, computed by the reference in one play. The reference replaces every op that has
/// an expansion by this expansion.
inline std::vector<Array> references_of(const Vars& outputs) {
  PlayerOptions options;
  options.passes = Passes::reference();
  return values_of(outputs, options);
}

/// Checks that the results on one thread and on three threads have the same bits and agree with the reference.
inline void check_agreement(const Array& one, const Array& three, const Array& expanded, double tolerance) {
  CHECK(std::memcmp(one.data(), three.data(), one.bytes()) == 0);
  const xt::xarray<double> kernel = as_doubles(one), reference = as_doubles(expanded);
  REQUIRE(kernel.shape() == reference.shape());
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    INFO("element " << i << ": kernel " << kernel.data()[i] << ", reference " << reference.data()[i]);
    REQUIRE(close(kernel.data()[i], reference.data()[i], tolerance));
  }
}

/// Checks that the kernels give the same bits on one thread and on three threads, and that they agree with the
/// reference. Each output is played separately.
inline void check_expansion(const Vars& outputs, double tolerance) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    CAPTURE(k);
    check_agreement(fast(outputs[k], 1), fast(outputs[k], 3), evaluate(outputs[k]), tolerance);
  }
}

/// Like check_expansion, for large arrays: all outputs are played together.
inline void check_large_expansion(const Vars& outputs, double tolerance) {
  const std::vector<Array> one = fast(outputs, 1), three = fast(outputs, 3), expanded = references_of(outputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    CAPTURE(k);
    check_agreement(one[k], three[k], expanded[k], tolerance);
  }
}

/// Returns normally distributed numbers, as a function of the seed.
inline xt::xarray<double> normal_array(const std::vector<std::size_t>& shape, unsigned seed, double mean = 0,
                                       double deviation = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal(mean, deviation);
  xt::xarray<double> values = xt::xarray<double>::from_shape(shape);
  for (std::size_t i = 0; i < values.size(); ++i) values.data()[i] = normal(bits);
  return values;
}
inline xt::xarray<float> single(const xt::xarray<double>& values) {
  return xt::xarray<float>(values);
}

}  // namespace xtape
