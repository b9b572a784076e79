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

TEST_CASE("products in tiles agree with plain loops, whatever the sizes, the layouts and the number of products" *
          needs_tiles()) {
  std::mt19937 random(5);
  const auto size = [&](unsigned largest) { return static_cast<std::int64_t>(1 + random() % largest); };
  for (int round = 0; round < 120; ++round) {
    // A single product is cut over rows and panels, many products are not. More than 256 terms are summed in blocks.
    const std::int64_t batch = round % 3 == 0 ? 1 : round % 3 == 1 ? 3 : 18;
    const std::int64_t parts = round % 5 == 0 ? 2 : 1;
    const std::int64_t m = size(batch == 1 ? 150 : 40), n = size(70), k = size(round % 4 == 0 ? 600 : 40);
    check_matrices<float>(make_tiles<float>, m, n, k, batch, parts, random() % 8, round % 2 == 0);
    check_matrices<double>(make_tiles<double>, m, n, k, batch, parts, random() % 8, round % 2 == 1);
  }
  check_matrices<float>(make_tiles<float>, 60, 1100, 9, 1, 1, 0, false);  // more panels than one task has
  for (unsigned flips = 0; flips < 4; ++flips) {                          // many rows, whose tasks share packed columns
    check_matrices<float>(make_tiles<float>, 1030, 20, 600, 1, 1, flips, false);
    check_matrices<double>(make_tiles<double>, 1100, 40, 30, 2, 2, flips, true);
  }
  for (unsigned flips = 0; flips < 4; ++flips) {  // few rows by many prepared columns, which the tasks divide
    check_matrices<float>(make_tiles<float>, 120, 520, 280, 1, 1, flips, true);
    check_matrices<double>(make_tiles<double>, 64, 300, 470, 1, 1, flips, false);
  }
  check_matrices<float>(make_tiles<float>, 1030, 4200, 20, 1, 1, 2, false);  // in more than one stage
  check_matrices<float>(make_tiles<float>, 5000, 20, 300, 1, 1, 1, false);   // terms of a that are far apart
  for (const std::int64_t batch : {1, 2, 18}) {                              // … and rather far, for many columns
    check_matrices<float>(make_tiles<float>, 271, 133, 270, batch, 1, 1, false);
    check_matrices<double>(make_tiles<double>, 260, 130, 30, batch, 2, 3, true);
  }
  check_matrices<float>(make_tiles<float>, 1031, 150, 70, 1, 1, 1, true);
}

TEST_CASE("products in bfloat16 tiles agree with plain loops, whatever the sizes, the layouts and their number" *
          needs_bfloat16()) {
  std::mt19937 random(8);
  const auto size = [&](unsigned largest) { return static_cast<std::int64_t>(1 + random() % largest); };
  for (int round = 0; round < 120; ++round) {
    const std::int64_t batch = round % 3 == 0 ? 1 : round % 3 == 1 ? 3 : 18;
    const std::int64_t parts = round % 5 == 0 ? 2 : 1;
    const std::int64_t m = size(batch == 1 ? 150 : 40), n = size(70), k = size(round % 4 == 0 ? 1200 : 40);
    check_matrices<float>(make_bfloat16_tiles, m, n, k, batch, parts, random() % 8, round % 2 == 0);
  }
  for (unsigned flips = 0; flips < 8; ++flips)
    check_matrices<float>(make_bfloat16_tiles, 1030, 20, 1041, 1, 1, flips, false);
  check_matrices<float>(make_bfloat16_tiles, 1030, 4200, 21, 1, 1, 2, true);
}

TEST_CASE("a product with precision bf16 is that of the rounded factors, summed in float32" * needs_bfloat16()) {
  std::mt19937 random(9);
  for (const std::int64_t k : {100, 768, 3000}) {
    const std::vector<float> a = drawn(90 * k, random, 4), b = drawn(k * 75, random, 4);
    const auto rounded = [](std::vector<float> numbers) {
      for (float& x : numbers) {
        int exponent = 0;
        const float digits = std::frexp(x, &exponent);  // in [0.5, 1)
        x = std::ldexp(std::nearbyint(digits * 256), exponent - 8);
      }
      return numbers;
    };
    const Multiplied done = multiply(90, k, 75, a, b, -1, Precision::bf16);
    CHECK(done.way == (amx::available() ? ProductWay::amx : ProductWay::bfloat16_tiles));
    const Multiplied exact = multiply(90, k, 75, rounded(a), rounded(b));
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < done.c.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(done.c[i]) - static_cast<double>(exact.c[i])));
      largest = std::max(largest, std::abs(static_cast<double>(exact.c[i])));
    }
    CAPTURE(k);
    CHECK(worst < 2e-6 * largest);
    CHECK(done.error > 100 * exact.error_of_chains);  // it does round
    CHECK(std::sqrt(done.error / static_cast<double>(done.c.size())) < 1.0 / 256);
    CHECK(multiply(90, k, 75, a, b, 1, Precision::bf16).c == done.c);  // prepared
    // Two numbers have 16 bits, and their products lack the smallest one.
    const Multiplied two = multiply(90, k, 75, a, b, -1, Precision::bf16x3);
    CHECK(std::sqrt(two.error / static_cast<double>(two.c.size())) < std::exp2(-16));
    if (k <= 100) CHECK((two.error > 50 * exact.error_of_chains) == amx::available());  // later, sums err more
  }
}

TEST_CASE("with precisions bf16 and bf16x3, infinity stays infinity and NaN stays NaN" * needs_bfloat16()) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t m = 60, k = 50, n = 70;
  std::vector<float> a(m * k, 1.0f), b(k * n, 2.0f);
  a[0 * k + 3] = infinity;
  a[1 * k + 4] = std::bit_cast<float>(0x7F800001U);  // a NaN whose upper half is infinity
  a[2 * k + 5] = std::numeric_limits<float>::max();  // rounds to infinity
  b[7 * n + 9] = nan;
  for (const Precision precision : {Precision::bf16, Precision::bf16x3}) {
    const std::vector<float> c = multiply(m, k, n, a, b, -1, precision).c;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const float x = c[static_cast<std::size_t>(i * n + j)];
        CAPTURE(i);
        CAPTURE(j);
        if (j == 9 || i == 1)
          CHECK(std::isnan(x));
        else
          CHECK(x == (i == 0 || i == 2 ? infinity : 2.0f * k));
      }
  }
}
