#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "xtape/decode.hpp"

using namespace xtape;

namespace {
const std::vector<double> logits = {std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};

void check_frequencies(const Sampling& sampling, const std::vector<double>& expected) {
  const std::vector<double> probabilities = sampling_probabilities(logits, sampling);
  std::vector<int> counts(expected.size());
  constexpr int draws = 40000;
  for (std::uint64_t i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sample(logits, sampling, i))];
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(probabilities[i] == doctest::Approx(expected[i]));
    if (expected[i] == 0) {
      CHECK(counts[i] == 0);
    } else {
      const double spread = std::sqrt(draws * expected[i] * (1 - expected[i]));
      CHECK(std::abs(counts[i] - draws * expected[i]) <= 4 * spread);
    }
  }
}
}  // namespace

TEST_CASE("samples follow the distribution that temperature, top_k and top_p leave") {
  check_frequencies({.seed = 1}, {0.1, 0.4, 0.2, 0.3});
  const double total = 0.01 + 0.16 + 0.04 + 0.09;
  check_frequencies({.temperature = 0.5, .seed = 2}, {0.01 / total, 0.16 / total, 0.04 / total, 0.09 / total});
  check_frequencies({.top_k = 2, .seed = 3}, {0, 4.0 / 7, 0, 3.0 / 7});
  check_frequencies({.top_k = 9, .seed = 3}, {0.1, 0.4, 0.2, 0.3});
  check_frequencies({.top_p = 0.65, .seed = 4}, {0, 4.0 / 7, 0, 3.0 / 7});
  check_frequencies({.top_p = 0.75, .seed = 5}, {0, 4.0 / 9, 2.0 / 9, 3.0 / 9});
  check_frequencies({.top_p = 0.01, .seed = 6}, {0, 1, 0, 0});
  check_frequencies({.temperature = 0}, {0, 1, 0, 0});
  // top_p is of what top_k leaves: 4/7 alone reaches one half.
  check_frequencies({.top_k = 2, .top_p = 0.5, .seed = 7}, {0, 1, 0, 0});
}

TEST_CASE("a draw depends on seed and number alone; very cold is greedy; -inf is never drawn") {
  CHECK(sample(logits, {.seed = 3}, 17) == sample(logits, {.seed = 3}, 17));
  int differing = 0;
  for (std::uint64_t i = 0; i < 100; ++i) differing += sample(logits, {.seed = 3}, i) != sample(logits, {.seed = 4}, i);
  CHECK(differing > 20);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(sample(logits, {.temperature = 1e-6}, i) == 1);
  const double never = -std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(sample({never, 1, never}, {}, i) == 1);
  CHECK(sampling_probabilities({2, 2, 2}, {.top_k = 2}) == std::vector<double>{0.5, 0.5, 0});
}

TEST_CASE("sampling refuses what it cannot do") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(sample(logits, {.temperature = -1}, 0), Error);
  CHECK_THROWS_AS(sample(logits, {.top_k = -1}, 0), Error);
  CHECK_THROWS_AS(sample(logits, {.top_p = 0}, 0), Error);
  CHECK_THROWS_AS(sample(logits, {.top_p = 1.1}, 0), Error);
  CHECK_THROWS_AS(sample({0, std::nan("")}, {}, 0), Error);
  CHECK_THROWS_AS(sample({0, infinity}, {}, 0), Error);
  CHECK_THROWS_AS(sample({-infinity, -infinity}, {}, 0), Error);
  CHECK_THROWS_AS(sample({}, {}, 0), Error);
}
