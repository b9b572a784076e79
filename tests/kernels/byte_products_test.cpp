// Products of rows by a matrix in blocks, in 8-bit integers: the same bits as a plain computation in their order.
#include "byte_matrices.hpp"

using namespace xtape;

namespace {
/// Adds both halves until one number is left.
float halved(std::vector<float> numbers) {
  for (std::size_t half = numbers.size() / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) numbers[i] += numbers[i + half];
  return numbers[0];
}

/// The product in the order of few rows: 16 lanes of four neighbours, and 8 lanes of minima.
float of_few_rows(const BlockMatrix& w, std::int64_t column, const ByteRounded& x) {
  std::vector<float> lanes(16, 0), less(8, 0);
  for (std::int64_t k = 0; k < w.terms; k += 4) {
    float& lane = lanes[static_cast<std::size_t>(k % 64 / 4)];
    lane = std::fma(static_cast<float>(x.products(w, column, k, 4)),
                    w.at(column, k).scale * x.scales[static_cast<std::size_t>(k / 32)], lane);
  }
  if (w.dtype != Dtype::q4_k && w.dtype != Dtype::q5_k) return halved(lanes);
  for (std::int64_t k = 0; k < w.terms; k += 32) {
    float& lane = less[static_cast<std::size_t>(k / 32 % 8)];
    lane = std::fma(w.at(column, k).minimum, x.sum_of(k / 32), lane);
  }
  return halved(lanes) - halved(less);
}

/// The product in the order of many rows: one part after the other.
float of_many_rows(const BlockMatrix& w, std::int64_t column, const ByteRounded& x) {
  const int part = w.dtype == Dtype::q6_k ? 16 : 32;
  float sum = 0;
  for (std::int64_t k = 0; k < w.terms; k += part) {
    const Decoded first = w.at(column, k);
    const float scale = x.scales[static_cast<std::size_t>(k / 32)];
    sum = std::fma(static_cast<float>(x.products(w, column, k, part)), first.scale * scale, sum);
    if (w.dtype == Dtype::q4_k || w.dtype == Dtype::q5_k) sum = std::fma(-first.minimum, x.sum_of(k / 32), sum);
  }
  return sum;
}

/// x [m, k], with any distance between elements, by w, whose product may be the second or the first operand.
std::vector<float> multiplied(const std::vector<float>& x, std::int64_t m, const BlockMatrix& w, int threads,
                              bool first = false, std::int64_t apart = 1, const std::vector<float>& add = {}) {
  const std::int64_t n = w.blocks.shape()[0], k = w.terms;
  Product product;
  product.precision = Precision::int8;
  product.bits = Bits::same;
  product.threads = threads;
  Layout row{{m, k}, {k * apart, apart}, 0};
  product.a = first ? Layout::dense({n, k}) : row;
  product.b = first ? row : Layout::dense({n, k});
  product.c = first ? Layout::dense({n, m}) : Layout::dense({m, n});
  product.a_axes = first ? "nk" : "mk";
  product.b_axes = first ? "mk" : "nk";
  product.c_axes = first ? "nm" : "mn";
  product.narrow[first ? 0 : 1] = w.dtype;
  product.accumulate = !add.empty();
  const PlannedProduct planned = make_product(product);
  CHECK(planned.way == ProductWay::bytes);
  std::vector<float> spread(static_cast<std::size_t>(m * k * apart), 9), c = add;
  for (std::size_t i = 0; i < x.size(); ++i) spread[i * static_cast<std::size_t>(apart)] = x[i];
  c.resize(static_cast<std::size_t>(m * n));
  Scratch scratch(planned.scratch_bytes);
  const void* rows = spread.data();
  planned.run(first ? w.blocks.data() : rows, first ? rows : w.blocks.data(), c.data(), scratch.data());
  return c;
}
}  // namespace

TEST_CASE("products in 8 bits have the bits of a plain computation, for any rows, columns, terms and threads" *
          needs_bytes()) {
  std::mt19937 random(3);
  for (const Dtype dtype : byte_formats)
    for (const std::int64_t m : {1, 2, 4, 5, 8, 9, 15, 16, 17, 31, 70})
      for (const std::int64_t k : {32, 64, 96, 256, 544, 768}) {
        if (k % block_of(dtype) != 0 || (m == 70 && k != 256)) continue;
        const std::int64_t n = m == 2 ? 1 : m == 9 || m == 17 ? 70 : m == 1 || m == 31 ? 35 : m == 16 ? 17 : 5;
        const BlockMatrix w(dtype, n, k, random);
        const std::vector<float> x = drawn(m * k, random), add = drawn(m * n, random);
        const int threads = m % 2 == 0 ? 3 : 1;
        const auto c = multiplied(x, m, w, threads), turned = multiplied(x, m, w, threads, true, 3);
        const auto added = multiplied(x, m, w, 2, false, 1, add);
        CAPTURE(name_of(dtype));
        CAPTURE(m);
        CAPTURE(k);
        bool equal = true;
        for (std::int64_t i = 0; i < m; ++i) {
          const ByteRounded row({x.begin() + i * k, x.begin() + (i + 1) * k});
          for (std::int64_t j = 0; j < n; ++j) {
            const float expected = m <= 8 ? of_few_rows(w, j, row) : of_many_rows(w, j, row);
            const auto at = static_cast<std::size_t>(i * n + j);
            equal = equal && same_bits(c[at], expected) &&
                    same_bits(turned[static_cast<std::size_t>(j * m + i)], expected) &&
                    same_bits(added[at], add[at] + expected);
          }
        }
        CHECK(equal);
      }
}

TEST_CASE("products in 8 bits: extreme integers, zeros, tiny numbers, NaN and infinities" * needs_bytes()) {
  std::mt19937 random(4);
  for (const Dtype dtype : byte_formats)
    for (const std::int64_t m : {5, 11, 20}) {
      BlockMatrix w(dtype, 20, 512, random);
      if (dtype == Dtype::q8_0)
        for (std::int64_t b = 0; b < 20 * 16; ++b)
          std::fill_n(static_cast<block::Q8_0*>(w.blocks.data())[b].q, 32,
                      static_cast<std::int8_t>(b % 3 == 0 ? -128 : 127));
      std::vector<float> x = drawn(m * 512, random);
      const auto row = [&](std::int64_t i) { return x.begin() + i * 512; };
      std::fill_n(row(0), 512, 2.5F);  // integers 127
      std::fill_n(row(1), 512, 0.0F);
      std::fill_n(row(2), 512, 0x1p-130F);  // rounded to 0
      row(3)[40] = std::numeric_limits<float>::quiet_NaN();
      row(4)[300] = -std::numeric_limits<float>::infinity();
      const auto c = multiplied(x, m, w, 2);
      CAPTURE(name_of(dtype));
      for (std::int64_t i = 0; i < m; ++i) {
        const ByteRounded rounded({row(i), row(i) + 512});
        for (std::int64_t j = 0; j < 20; ++j) {
          const float result = c[static_cast<std::size_t>(i * 20 + j)];
          CHECK(same_bits(result, m <= 8 ? of_few_rows(w, j, rounded) : of_many_rows(w, j, rounded)));
          if (i == 1 || i == 2) CHECK(result == 0);
          CHECK(std::isnan(result) == (i == 3 || i == 4));
        }
      }
    }
}

TEST_CASE("products in 8 bits are near those of float32" * needs_bytes()) {
  std::mt19937 random(5);
  for (const Dtype dtype : byte_formats)
    for (const std::int64_t m : {3, 20}) {
      const BlockMatrix w(dtype, 30, 1024, random);
      const auto x = drawn(m * 1024, random), c = multiplied(x, m, w, 1);
      double difference = 0, size = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < 30; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < 1024; ++k) {
            const Decoded number = w.at(j, k);
            sum += x[static_cast<std::size_t>(i * 1024 + k)] * (double{number.scale} * number.integer - number.minimum);
          }
          difference +=
              (c[static_cast<std::size_t>(i * 30 + j)] - sum) * (c[static_cast<std::size_t>(i * 30 + j)] - sum);
          size += sum * sum;
        }
      const double error = std::sqrt(difference / size);
      CHECK(error < 0.01);   // the spacing is 2 · 2.1 / 127 of a number of size 1, and a rounding error 0.29 of it
      CHECK(error > 0.001);  // it does round
    }
}
