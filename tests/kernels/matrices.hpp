/// Matrix products of any strides, compared with plain loops.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/products/gemm.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// 64-byte aligned memory for scratch.
struct Scratch {
  explicit Scratch(std::size_t bytes) : array(Dtype::float64, {static_cast<std::int64_t>(bytes / 8 + 8)}) {}
  void* data() { return array.data(); }
  Array array;
};

/// Compares `batch` products of m x k by k x n, each the sum of `parts` products, with plain loops. `make(plan)` gives
/// the planned product, with or without a fixed operand. The numbers are small integers, so that every order of summing
/// gives the same result.
template <class T, class Make>
void check_matrices(const Make& make, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                    std::int64_t parts, unsigned flips, bool accumulate) {
  const auto strides = [&](std::int64_t rows, std::int64_t columns, bool flipped) {
    return flipped ? std::array<std::int64_t, 2>{1, rows + 3} : std::array<std::int64_t, 2>{columns + 5, 1};
  };
  const auto a_strides = strides(m, k, flips & 1u), b_strides = strides(k, n, flips & 2u),
             c_strides = strides(m, n, flips & 4u);
  const std::int64_t a_matrix = (m + 3) * (k + 5), b_matrix = (k + 3) * (n + 5), c_matrix = (m + 3) * (n + 5);
  GemmPlan plan;
  plan.m = m;
  plan.n = n;
  plan.k = k;
  plan.m_strides = {a_strides[0], 0, c_strides[0]};
  plan.n_strides = {0, b_strides[1], c_strides[1]};
  plan.k_strides = {a_strides[1], b_strides[0], 0};
  if (batch > 1) plan.outer.add(batch, {a_matrix * parts, b_matrix * parts, c_matrix});
  if (parts > 1) plan.sums.add(parts, {a_matrix, b_matrix});
  plan.offsets = {2, 1, 3};
  plan.accumulate = accumulate;

  std::mt19937 random(7);
  const auto numbers = [&](std::int64_t count) {
    std::vector<T> drawn(static_cast<std::size_t>(count));
    for (T& each : drawn) each = static_cast<T>(random() % 7) - 3;
    return drawn;
  };
  const std::vector<T> a = numbers(2 + a_matrix * parts * batch), b = numbers(1 + b_matrix * parts * batch),
                       before = numbers(3 + c_matrix * batch);
  std::vector<T> expected = before;
  for (std::int64_t o = 0; o < batch; ++o)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        T& to = expected[static_cast<std::size_t>(3 + o * c_matrix + i * c_strides[0] + j * c_strides[1])];
        if (!accumulate) to = 0;
        for (std::int64_t s = 0; s < parts; ++s)
          for (std::int64_t l = 0; l < k; ++l)
            to += a[static_cast<std::size_t>(2 + (o * parts + s) * a_matrix + i * a_strides[0] + l * a_strides[1])] *
                  b[static_cast<std::size_t>(1 + (o * parts + s) * b_matrix + l * b_strides[0] + j * b_strides[1])];
      }
  for (int threads : {1, 2, 3})
    for (int fixed : {-1, 0, 1}) {
      plan.threads = threads;
      plan.fixed = fixed;
      const MatrixProducts<T> made = make(plan);
      Scratch scratch(made.scratch_bytes), prepared(made.prepared_bytes);
      if (made.prepare) made.prepare((fixed == 0 ? a : b).data(), prepared.data());
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(batch);
      CAPTURE(parts);
      CAPTURE(flips);
      CAPTURE(fixed);
      for (int run = 0; run < 2; ++run) {
        std::vector<T> c = before;
        made.run(a.data(), b.data(), c.data(), scratch.data(), prepared.data());
        CHECK(c == expected);
      }
    }
}

}  // namespace xtape
