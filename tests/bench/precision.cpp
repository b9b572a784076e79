// The errors of float32 products at each precision, against float64, for products of the benchmark's workloads. Prints
// one JSON line for each: the root mean square error divided by the root mean square of the results, for normal
// numbers.
//
// usage: precision
#include <cmath>
#include <cstdio>
#include <exception>
#include <random>
#include <vector>

#include "dense_call.hpp"
#include "kernels/table/kernels.hpp"

namespace {

using namespace xtape;

struct Size {
  const char* workload;
  std::int64_t m, n, k;
};

std::vector<float> drawn(std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& each : numbers) each = normal(random);
  return numbers;
}

void measure(const Size& size) {
  constexpr std::int64_t checked_rows = 16;  // the results that are computed in float64
  std::mt19937 random(1);
  const std::vector<float> a = drawn(size.m * size.k, random), b = drawn(size.k * size.n, random);
  std::vector<double> exact(static_cast<std::size_t>(checked_rows * size.n));
  for (std::int64_t i = 0; i < checked_rows; ++i)
    for (std::int64_t l = 0; l < size.k; ++l)
      for (std::int64_t j = 0; j < size.n; ++j)
        exact[static_cast<std::size_t>(i * size.n + j)] +=
            static_cast<double>(a[static_cast<std::size_t>(i * size.k + l)]) *
            b[static_cast<std::size_t>(l * size.n + j)];
  for (const Precision precision : {Precision::float32, Precision::bf16x3, Precision::bf16}) {
    const DenseCall call({{Dtype::float32, {size.m, size.k}}, {Dtype::float32, {size.k, size.n}}},
                         {{Dtype::float32, {size.m, size.n}}}, {{"equation", std::string("mk,kn->mn")}}, 1, precision);
    const Kernel product = kernels().make("einsum", call.form());
    Array scratch(Dtype::boolean, {static_cast<std::int64_t>(product.scratch_bytes)});
    std::vector<float> c(static_cast<std::size_t>(size.m * size.n));
    const void* const in[] = {a.data(), b.data()};
    void* const out[] = {c.data()};
    product.run({in, out, scratch.data()});
    double error = 0, square = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      error += (c[i] - exact[i]) * (c[i] - exact[i]);
      square += exact[i] * exact[i];
    }
    std::printf(
        "{\"workload\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"precision\": \"%s\", \"error\": %.2e}\n",
        size.workload, static_cast<long long>(size.m), static_cast<long long>(size.n), static_cast<long long>(size.k),
        name_of(precision), std::sqrt(error / square));
  }
}

}  // namespace

int main() {
  try {
    for (const Size& size : {Size{"gpt-char", 768, 512, 128},
                             {"gpt-baby", 2048, 1536, 384},
                             {"gpt-baby", 2048, 384, 1536},
                             {"gpt2-124m", 256, 3072, 768},
                             {"gpt2-124m", 256, 768, 3072},
                             {"gpt2-124m", 256, 768, 50257},
                             {"transformer", 2048, 8192, 128},
                             {"gru-attention", 1536, 768, 256}})
      measure(size);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "precision: %s\n", error.what());
    return 1;
  }
}
