// Products of rows by a matrix in blocks, in 8-bit integers: the same bits as a plain computation in their order.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/blocks/block_formats.hpp"
#include "kernels/products/product.hpp"
#include "matrices.hpp"
#include "needs_instructions.hpp"

using namespace xtape;

namespace {
constexpr Dtype formats[] = {Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k};

/// Number i of a block is scale * integer - minimum.
struct Decoded {
  float scale, minimum;
  int integer;
};
Decoded decoded(const block::Q8_0& b, int i) {
  return {b.scale, 0, b.q[i]};
}
Decoded decoded(const block::Q4_0& b, int i) {
  return {b.scale, 0, (i < 16 ? b.q[i] & 15 : b.q[i - 16] >> 4) - 8};
}
template <class B>
Decoded decoded(const B& b, int i) {  // Q4_K, Q5_K
  const block::PartScales parts = block::part_scales(b.scales);
  const int part = i / 32, byte = b.q[i / 64 * 32 + i % 32];
  int integer = part % 2 == 0 ? byte & 15 : byte >> 4;
  if constexpr (std::is_same_v<B, block::Q5_K>) integer += (b.high[i % 32] >> part & 1) * 16;
  return {static_cast<float>(b.scale) * parts.scales[part], static_cast<float>(b.minimum) * parts.minima[part],
          integer};
}
Decoded decoded(const block::Q6_K& b, int i) {
  const int half = i / 128, quarter = i % 128 / 32, byte = b.q[64 * half + quarter % 2 * 32 + i % 32];
  const int low = quarter < 2 ? byte & 15 : byte >> 4, high = b.high[32 * half + i % 32] >> 2 * quarter & 3;
  return {static_cast<float>(b.scale) * b.scales[i / 16], 0, low + 16 * high - 32};
}

/// A matrix [columns, terms] in blocks with random bits and small scales.
struct BlockMatrix {
  Dtype dtype;
  std::int64_t terms;
  Array blocks;

  BlockMatrix(Dtype format, std::int64_t columns, std::int64_t of_terms, std::mt19937& random)
      : dtype(format), terms(of_terms), blocks(format, {columns, of_terms}) {
    auto* bytes = static_cast<std::uint8_t*>(blocks.data());
    for (std::size_t i = 0; i < blocks.bytes(); ++i) bytes[i] = static_cast<std::uint8_t>(random());
    const auto scale = [&] { return float16(static_cast<float>(1 + random() % 1000) / 50000); };
    for (std::int64_t b = 0; b < columns * terms / block_of(dtype); ++b) {
      if (dtype == Dtype::q8_0) static_cast<block::Q8_0*>(blocks.data())[b].scale = scale();
      if (dtype == Dtype::q4_0) static_cast<block::Q4_0*>(blocks.data())[b].scale = scale();
      if (dtype == Dtype::q6_k) static_cast<block::Q6_K*>(blocks.data())[b].scale = scale();
      if (dtype == Dtype::q4_k)
        static_cast<block::Q4_K*>(blocks.data())[b].scale = scale(),
        static_cast<block::Q4_K*>(blocks.data())[b].minimum = scale();
      if (dtype == Dtype::q5_k)
        static_cast<block::Q5_K*>(blocks.data())[b].scale = scale(),
        static_cast<block::Q5_K*>(blocks.data())[b].minimum = scale();
    }
  }
  Decoded at(std::int64_t column, std::int64_t term) const {
    const std::int64_t place = column * terms + term, b = place / block_of(dtype);
    const auto i = static_cast<int>(place % block_of(dtype));
    const void* data = blocks.data();
    switch (dtype) {
      case Dtype::q4_0:
        return decoded(static_cast<const block::Q4_0*>(data)[b], i);
      case Dtype::q4_k:
        return decoded(static_cast<const block::Q4_K*>(data)[b], i);
      case Dtype::q5_k:
        return decoded(static_cast<const block::Q5_K*>(data)[b], i);
      case Dtype::q6_k:
        return decoded(static_cast<const block::Q6_K*>(data)[b], i);
      default:
        return decoded(static_cast<const block::Q8_0*>(data)[b], i);
    }
  }
};

/// A row in 8 bits.
struct Row {
  std::vector<float> scales;  ///< of 32 numbers
  std::vector<int> integers;

  explicit Row(const std::vector<float>& x) {
    for (std::size_t first = 0; first < x.size(); first += 32) {
      float largest = 0;
      bool finite = true;
      for (std::size_t i = first; i < first + 32; ++i) {
        finite = finite && std::isfinite(x[i]);
        largest = std::max(largest, std::abs(x[i]));
      }
      const bool none = !finite || largest < 0x1p-118F;
      scales.push_back(!finite ? std::numeric_limits<float>::quiet_NaN() : none ? 0 : largest / 127);
      for (std::size_t i = first; i < first + 32; ++i)
        integers.push_back(none ? 0 : static_cast<int>(std::nearbyint(x[i] * (127 / largest))));
    }
  }
  std::int64_t products(const BlockMatrix& w, std::int64_t column, std::int64_t first, int count) const {
    std::int64_t sum = 0;
    for (std::int64_t i = first; i < first + count; ++i)
      sum += integers[static_cast<std::size_t>(i)] * w.at(column, i).integer;
    return sum;
  }
  float sum_of(std::int64_t group) const {
    int sum = 0;
    for (std::int64_t i = 32 * group; i < 32 * group + 32; ++i) sum += integers[static_cast<std::size_t>(i)];
    return scales[static_cast<std::size_t>(group)] * static_cast<float>(sum);
  }
};

/// Adds both halves until one number is left.
float halved(std::vector<float> numbers) {
  for (std::size_t half = numbers.size() / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) numbers[i] += numbers[i + half];
  return numbers[0];
}

/// The product in the order of few rows: 16 lanes of four neighbours, and 8 lanes of minima.
float of_few_rows(const BlockMatrix& w, std::int64_t column, const Row& x) {
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
float of_many_rows(const BlockMatrix& w, std::int64_t column, const Row& x) {
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

std::vector<float> drawn(std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& each : numbers) each = normal(random);
  return numbers;
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

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}
}  // namespace

TEST_CASE("products in 8 bits have the bits of a plain computation, for any rows, columns, terms and threads" *
          needs_bytes()) {
  std::mt19937 random(3);
  for (const Dtype dtype : formats)
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
          const Row row({x.begin() + i * k, x.begin() + (i + 1) * k});
          for (std::int64_t j = 0; j < n; ++j) {
            const float expected = m <= 8 ? of_few_rows(w, j, row) : of_many_rows(w, j, row);
            const auto at = static_cast<std::size_t>(i * n + j);
            equal = equal && same(c[at], expected) && same(turned[static_cast<std::size_t>(j * m + i)], expected) &&
                    same(added[at], add[at] + expected);
          }
        }
        CHECK(equal);
      }
}

TEST_CASE("products in 8 bits: extreme integers, zeros, tiny numbers, NaN and infinities" * needs_bytes()) {
  std::mt19937 random(4);
  for (const Dtype dtype : formats)
    for (const std::int64_t m : {5, 11}) {
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
        const Row rounded({row(i), row(i) + 512});
        for (std::int64_t j = 0; j < 20; ++j) {
          const float result = c[static_cast<std::size_t>(i * 20 + j)];
          CHECK(same(result, m <= 8 ? of_few_rows(w, j, rounded) : of_many_rows(w, j, rounded)));
          if (i == 1 || i == 2) CHECK(result == 0);
          CHECK(std::isnan(result) == (i == 3 || i == 4));
        }
      }
    }
}

TEST_CASE("products in 8 bits are near those of float32" * needs_bytes()) {
  std::mt19937 random(5);
  for (const Dtype dtype : formats)
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
