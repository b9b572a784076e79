/// Products of matrices by the implementation that is chosen, beside sums in float64.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/products/amx.hpp"
#include "kernels/products/gemm.hpp"
#include "kernels/products/product.hpp"
#include "matrices.hpp"
#include "needs_instructions.hpp"

namespace xtape::tests {

inline constexpr std::array precisions{Precision::float32, Precision::bf16x3, Precision::bf16};

/// a [m, k] b [k, n] by the chosen implementation.
struct Multiplied {
  ProductWay way;
  std::vector<float> c;
  // The mean squares of the differences from float64, relative to the sums of |a b|: of c, and of sequential float32
  // sums.
  double error = 0, error_of_chains = 0;
};
inline Multiplied multiply(std::int64_t m, std::int64_t k, std::int64_t n, const std::vector<float>& a,
                           const std::vector<float>& b, int fixed = -1, Precision precision = Precision::float32) {
  Product product;
  product.precision = precision;
  product.bits = Bits::fast;
  product.a = Layout::dense({m, k});
  product.b = Layout::dense({k, n});
  product.c = Layout::dense({m, n});
  product.a_axes = "mk";
  product.b_axes = "kn";
  product.c_axes = "mn";
  product.fixed = fixed;
  const PlannedProduct planned = make_product(product);
  Scratch scratch(planned.scratch_bytes), prepared(planned.prepared_bytes);
  CHECK(bool(planned.prepare) == (fixed == 1 || (fixed == 0 && planned.way == ProductWay::amx)));
  if (planned.prepare) planned.prepare((fixed == 0 ? a : b).data(), prepared.data());
  Multiplied done{planned.way, std::vector<float>(static_cast<std::size_t>(m * n))};
  planned.run(a.data(), b.data(), done.c.data(), scratch.data(), prepared.data());
  const auto square = [](double x) { return x * x; };
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      float chain = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float x = a[static_cast<std::size_t>(i * k + l)], y = b[static_cast<std::size_t>(l * n + j)];
        const double term = static_cast<double>(x) * y;
        sum += term;
        size += std::abs(term);
        chain = std::fma(x, y, chain);
      }
      done.error += square((done.c[static_cast<std::size_t>(i * n + j)] - sum) / size);
      done.error_of_chains += square((chain - sum) / size);
    }
  return done;
}

inline std::vector<float> drawn(std::int64_t count, std::mt19937& random, double largest_exponent) {
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> exponent(-largest_exponent, largest_exponent);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& each : numbers) each = normal(random) * static_cast<float>(std::exp2(exponent(random)));
  return numbers;
}

}  // namespace xtape::tests
