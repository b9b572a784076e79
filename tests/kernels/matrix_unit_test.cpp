// Products on the matrix unit (AMX).
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "multiplied.hpp"
#include "needs_instructions.hpp"

using namespace xtape;
using namespace xtape::tests;

TEST_CASE("products on the matrix unit agree with plain loops, whatever the sizes, the layouts and their number" *
          needs_matrix_unit()) {
  std::mt19937 random(6);
  const auto size = [&](unsigned largest) { return static_cast<std::int64_t>(1 + random() % largest); };
  for (int round = 0; round < 60; ++round) {
    const std::int64_t batch = round % 3 == 0 ? 1 : round % 3 == 1 ? 3 : 18;
    const std::int64_t parts = round % 5 == 0 ? 2 : 1;
    // A matrix of one row or column has no stride that must be 1.
    const std::int64_t m = 1 + size(batch == 1 ? 200 : 40), n = 1 + size(100), k = 1 + size(round % 4 == 0 ? 1200 : 80);
    const auto make = [&](const GemmPlan& plan) {
      return make_amx(plan, precisions[static_cast<std::size_t>(round % 3)]);
    };
    check_matrices<float>(make, m, n, k, batch, parts, random() % 8, round % 2 == 0);
  }
  for (const Precision precision : precisions)  // many chunks of terms
    check_matrices<float>([&](const GemmPlan& plan) { return make_amx(plan, precision); }, 40, 100, 3000, 1, 1, 0,
                          false);
}

TEST_CASE("products on the matrix unit are as exact as float32 arithmetic" * needs_matrix_unit()) {
  std::mt19937 random(7);
  for (const double exponents : {0.0, 4.0, 20.0})
    for (const std::int64_t k : {16, 100, 768, 3000}) {
      const std::vector<float> a = drawn(90 * k, random, exponents), b = drawn(k * 75, random, exponents);
      const Multiplied done = multiply(90, k, 75, a, b);
      CHECK(done.way == ProductWay::amx);
      CAPTURE(exponents);
      CAPTURE(k);
      CHECK(done.error > 0);
      CHECK(done.error <= 1.2 * done.error_of_chains);
    }
}

TEST_CASE("float32 products use the matrix unit only if their bits may differ between processors") {
  Product product;
  product.a = product.b = product.c = Layout::dense({96, 96});
  product.a_axes = "mk";
  product.b_axes = "kn";
  product.c_axes = "mn";
  for (const Bits bits : {Bits::usual, Bits::same}) {
    product.bits = bits;
    CHECK(make_product(product).way == ProductWay::tiles);
  }
  product.bits = Bits::fast;
  CHECK(make_product(product).way == (amx::available() ? ProductWay::amx : ProductWay::tiles));
  product.bits = Bits::same;
  product.precision = Precision::bf16x3;
  CHECK_THROWS_WITH_AS(
      make_product(product),
      "precision bf16x3 gives other bits on another processor, which bits \"same\" refuses: use precision float32",
      Error);
}

TEST_CASE("on the matrix unit a product has the same bits with an operand prepared" * needs_matrix_unit()) {
  std::mt19937 random(8);
  for (const std::int64_t m : {64, 90, 300})
    for (const std::int64_t n : {110, 256})
      for (const std::int64_t k : {16, 300, 1024}) {
        const std::vector<float> a = drawn(m * k, random, 0), b = drawn(k * n, random, 0);
        const std::vector<float> expected = multiply(m, k, n, a, b).c;
        CHECK(multiply(m, k, n, a, b, 0).c == expected);
        CHECK(multiply(m, k, n, a, b, 1).c == expected);
      }
}

TEST_CASE("an operand that fits no cache is not prepared" * needs_matrix_unit()) {
  GemmPlan plan;
  plan.m = 32;
  plan.n = 4096;
  plan.k = 2048;
  plan.m_strides = {plan.k, 0, plan.n};
  plan.n_strides = {0, 1, 1};
  plan.k_strides = {1, plan.n, 0};
  plan.fixed = 1;
  CHECK(!make_amx(plan, Precision::float32).prepare);
  plan.fixed = 0;
  const MatrixProducts<float> small = make_amx(plan, Precision::float32);
  CHECK(bool(small.prepare));
  CHECK(small.prepared_bytes > static_cast<std::size_t>(plan.m * plan.k) * 6);
}

TEST_CASE("on the matrix unit infinity stays infinity and NaN stays NaN" * needs_matrix_unit()) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::int64_t m = 90, k = 600, n = 75;
  std::vector<float> a(static_cast<std::size_t>(m * k), 1.0f), b(static_cast<std::size_t>(k * n), 2.0f);
  a[3 * k + 500] = infinity;
  a[4 * k + 2] = -infinity;
  a[5 * k + 7] = std::numeric_limits<float>::quiet_NaN();
  a[6 * k + 9] = std::numeric_limits<float>::max();
  a[6 * k + 599] = -std::numeric_limits<float>::max();
  for (const int fixed : {-1, 0, 1}) {
    const Multiplied done = multiply(m, k, n, a, b, fixed);
    CHECK(done.way == ProductWay::amx);
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      CHECK(done.c[3 * n + j] == infinity);
      CHECK(done.c[4 * n + j] == -infinity);
      CHECK(std::isnan(done.c[5 * n + j]));
      CHECK(!std::isfinite(done.c[6 * n + j]));  // 2 max overflows
      CHECK(done.c[7 * n + j] == 1200.0f);
    }
  }
  for (const std::uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7fff8000u, 0x7f800001u}) {  // other bit patterns of NaN
    a.assign(a.size(), 1.0f);
    b.assign(b.size(), 2.0f);
    a[5 * k + 7] = std::bit_cast<float>(bits);
    b[9 * n + 3] = std::bit_cast<float>(bits);
    const Multiplied done = multiply(m, k, n, a, b);
    CHECK(std::isnan(done.c[5 * n + 1]));
    CHECK(std::isnan(done.c[8 * n + 3]));
    CHECK(done.c[8 * n + 4] == 1200.0f);
  }
  a.assign(a.size(), 1.0f);
  a[6 * k + 9] = std::numeric_limits<float>::max();
  a[6 * k + 599] = -std::numeric_limits<float>::max();
  b.assign(b.size(), 0.25f);
  CHECK(std::isfinite(multiply(m, k, n, a, b).c[6 * n]));
}

namespace {
/// The largest error of an element, relative to the sum of the magnitudes of its terms plus a subnormal unit per term.
double worst_error(std::int64_t m, std::int64_t k, std::int64_t n, const std::vector<float>& a,
                   const std::vector<float>& b, const std::vector<float>& c) {
  double worst = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double term = static_cast<double>(a[static_cast<std::size_t>(i * k + l)]) *
                            static_cast<double>(b[static_cast<std::size_t>(l * n + j)]);
        sum += term;
        size += std::abs(term);
      }
      const double got = c[static_cast<std::size_t>(i * n + j)];
      if (size > 0.5 * std::numeric_limits<float>::max()) continue;  // a partial sum may be infinite
      const double subnormal = static_cast<double>(k) * 0x1p-149;
      if (got == sum) continue;
      worst = std::max(worst, (std::abs(got - sum) - subnormal) / size);
    }
  return worst;
}
}  // namespace

TEST_CASE("products on the matrix unit are accurate if they are tiny" * needs_matrix_unit()) {
  std::mt19937 random(3);
  constexpr std::int64_t m = 96, k = 300, n = 112;
  for (const auto& scales : {std::pair(1e-30f, 1e-5f), std::pair(1e-5f, 1e-30f), std::pair(1e-20f, 1e-18f),
                             std::pair(1e-38f, 1.0f), std::pair(1e-41f, 1e3f), std::pair(1e-37f, 1e30f)}) {
    const float left = scales.first, right = scales.second;
    CAPTURE(left);
    CAPTURE(right);
    std::vector<float> a = drawn(m * k, random, 0), b = drawn(k * n, random, 0);
    for (float& each : a) each *= left;
    for (float& each : b) each *= right;
    for (int fixed : {-1, 0, 1}) {
      const Multiplied done = multiply(m, k, n, a, b, fixed);
      CHECK(done.way == ProductWay::amx);
      CHECK(worst_error(m, k, n, a, b, done.c) <= 5e-7);
    }
  }
}

TEST_CASE("products on the matrix unit are accurate with operands over the whole range of exponents" *
          needs_matrix_unit()) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> exponent(-148, 127), near(-40, 40);
  constexpr std::int64_t m = 96, k = 290, n = 112;
  const auto spread = [&](std::int64_t count) {
    std::vector<float> numbers = drawn(count, random, 0);
    for (float& each : numbers) each = std::ldexp(each, exponent(random) - 2);
    return numbers;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<float> a = spread(m * k), b = spread(k * n);
    CHECK(worst_error(m, k, n, a, b, multiply(m, k, n, a, b).c) <= 5e-7);
    // The terms are near 1, their factors far from 1.
    for (std::int64_t l = 0; l < k; ++l) {
      const int shift = exponent(random) / 2 * 2 - 10;
      for (std::int64_t i = 0; i < m; ++i)
        a[static_cast<std::size_t>(i * k + l)] = std::ldexp(1.1f + static_cast<float>(i % 7), shift + near(random) / 8);
      for (std::int64_t j = 0; j < n; ++j)
        b[static_cast<std::size_t>(l * n + j)] =
            std::ldexp(1.3f + static_cast<float>(j % 5), -shift + near(random) / 8);
    }
    CHECK(worst_error(m, k, n, a, b, multiply(m, k, n, a, b).c) <= 5e-7);
  }
}

TEST_CASE("products on the matrix unit: lines of zeros beside tiny numbers, infinities and NaN" * needs_matrix_unit()) {
  std::mt19937 random(6);
  constexpr std::int64_t m = 96, k = 64, n = 112;
  std::vector<float> a = drawn(m * k, random, 0), b = drawn(k * n, random, 0);
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t i = 0; i < m; i += 3) a[static_cast<std::size_t>(i * k + l)] = i % 2 == 0 ? 0.0f : -0.0f;
    for (std::int64_t i = 1; i < m; i += 3) a[static_cast<std::size_t>(i * k + l)] *= 1e-36f;
    for (std::int64_t j = 0; j < n; j += 5) b[static_cast<std::size_t>(l * n + j)] = 0;
    for (std::int64_t j = 1; j < n; j += 5) b[static_cast<std::size_t>(l * n + j)] *= 1e-3f;
  }
  CHECK(worst_error(m, k, n, a, b, multiply(m, k, n, a, b).c) <= 5e-7);
  b[static_cast<std::size_t>(5 * n + 7)] = std::numeric_limits<float>::infinity();
  const std::vector<float> c = multiply(m, k, n, a, b).c;
  CHECK(std::isnan(c[7]));  // a row of zeros times infinity
  CHECK(std::isinf(c[static_cast<std::size_t>(2 * n + 7)]));
  CHECK(c[static_cast<std::size_t>(3 * n + 8)] == 0);
}

namespace {
/// The value of least_sound for up to 32 rows of a [m, k] and up to 32 columns of b [k, n], in one chunk.
float least_sound(std::int64_t m, std::int64_t k, std::int64_t n, const std::vector<float>& a,
                  const std::vector<float>& b) {
  const std::int64_t stride = amx::steps_of(k) * 3 * amx::tile_bytes + amx::noted_bytes;
  Scratch left(static_cast<std::size_t>(2 * stride)), right(static_cast<std::size_t>(2 * stride));
  amx::pack_left({a.data(), k, 1}, 3, m, k, left.data(), stride);
  amx::pack_right({b.data(), 1, n}, 3, n, k, right.data(), stride);
  const auto count = [](std::int64_t lines) { return lines > amx::panel_lines ? 2 : 1; };
  return amx::least_sound(k, {left.data(), stride, count(m)}, {right.data(), stride, count(n)});
}
}  // namespace

TEST_CASE("on the matrix unit exact zeros among the sums are sound where no number is tiny" * needs_matrix_unit()) {
  std::mt19937 random(9);
  constexpr std::int64_t k = 256;
  for (const std::int64_t n : {std::int64_t{30}, std::int64_t{110}}) {  // one block, and a whole product
    const std::int64_t m = n;
    std::vector<float> one_hot(static_cast<std::size_t>(m * k)), signs(one_hot.size()), b = drawn(k * n, random, 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) one_hot[i * k + random() % k] = 1;
    for (float& each : signs) each = random() % 2 == 0 ? 1.0f : -1.0f;
    for (float& each : b) each = random() % 2 == 0 ? 0.0f : std::copysign(1 + std::abs(each), each);
    std::vector<float> more_signs(b.size());
    for (float& each : more_signs) each = random() % 2 == 0 ? 1.0f : -1.0f;
    for (const auto& [left, right] : {std::pair(&one_hot, &b), std::pair(&signs, &more_signs)}) {
      if (m <= amx::block_lines) {
        CHECK(least_sound(m, k, n, *left, *right) == 0);
        continue;
      }
      const Multiplied done = multiply(m, k, n, *left, *right);
      CHECK(done.way == ProductWay::amx);
      CHECK(std::count(done.c.begin(), done.c.end(), 0.0f) > 100);
      CHECK(worst_error(m, k, n, *left, *right, done.c) == 0);
    }
  }
}

TEST_CASE("on the matrix unit one tiny number of a panel gives its sums a bound, beside zeros and NaN too" *
          needs_matrix_unit()) {
  constexpr std::int64_t k = 70, lines = 20;
  const std::vector<float> ones(static_cast<std::size_t>(lines * k), 1.0f);
  const auto with = [&](std::size_t at, std::initializer_list<float> numbers) {
    std::vector<float> changed = ones;
    for (float each : numbers) changed[at] = each, at += k;  // of the next line, in this lane or the next
    return changed;
  };
  const float signalling = std::bit_cast<float>(0x7f800001u);
  CHECK(least_sound(lines, k, lines, ones, ones) == 0);
  CHECK(least_sound(lines, k, lines, with(0, {0x1p-39f}), with(3, {-0x1p-39f})) == 0);
  CHECK(least_sound(lines, k, lines, with(0, {0x1p-39f}), with(3, {0x1p-40f})) > 0);
  for (const std::size_t at : {0u, 20u, 69u, 16 * 70u})  // in each half of a step, the last step and the second panel
    for (const std::vector<float>& tiny :
         {with(at, {0x1p-103f}), with(at, {-1e-40f, 0.0f}), with(at, {1e-40f, signalling})}) {
      CHECK(least_sound(lines, k, lines, tiny, ones) > 0);
      CHECK(least_sound(lines, k, lines, ones, tiny) > 0);
    }
  // Numbers below 2^-102 have subnormal parts, whatever the other side is.
  const std::vector<float> large(ones.size(), 0x1p60f), tiny = with(5, {0x1p-103f});
  CHECK(least_sound(lines, k, lines, tiny, large) > 0);
  CHECK(least_sound(lines, k, lines, large, tiny) > 0);
  CHECK(least_sound(lines, k, lines, with(5, {0x1p-102f}), large) == 0);
  // A signalling NaN does not drop the largest magnitudes.
  CHECK(least_sound(lines, k, lines, with(0, {1e-40f, 0x1p100f, signalling}), ones) >=
        least_sound(lines, k, lines, with(0, {1e-40f, 0x1p100f}), ones));
}
