/// Functions that the benchmarks share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include "xtape/array.hpp"

namespace bench {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The least milliseconds of run(), after a first one, which is repeated for so many seconds, at least three times.
template <class F>
double best_of(double limit, const F& run) {
  run();
  double best = 1e9;
  const double end = seconds() + limit;
  for (int count = 0; count < 3 || seconds() < end; ++count) {
    const double start = seconds();
    run();
    best = std::min(best, seconds() - start);
  }
  return best * 1e3;
}

/// 0.1 sin(step · i): numbers that the benchmarks' Python programs make too.
inline xtape::Array waves(const xtape::Shape& shape, double step) {
  xtape::Array array(xtape::Dtype::float32, shape);
  for (std::int64_t i = 0; i < array.count(); ++i)
    array.as<float>()[i] = static_cast<float>(0.1 * std::sin(step * static_cast<double>(i)));
  return array;
}

}  // namespace bench
