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

/// Checks that the kernels give the same bits on one and on three threads, and agree with the reference, in which every
/// op that has an expansion is replaced by it.
inline void check_expansion(const Vars& outputs, double tolerance) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    CAPTURE(k);
    const Array one = fast(outputs[k], 1);
    const Array three = fast(outputs[k], 3);
    CHECK(std::memcmp(one.data(), three.data(), one.bytes()) == 0);
    const xt::xarray<double> kernel = as_doubles(one);
    const xt::xarray<double> reference = as_doubles(evaluate(outputs[k]));
    REQUIRE(kernel.shape() == reference.shape());
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      INFO("element " << i << ": kernel " << kernel.data()[i] << ", reference " << reference.data()[i]);
      REQUIRE(close(kernel.data()[i], reference.data()[i], tolerance));
    }
  }
}

/// Normally distributed numbers, a function of the seed.
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
