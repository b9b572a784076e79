#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "base/arrays/order.hpp"
#include "decode/sampler.hpp"
#include "folders.hpp"
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

namespace {
TEST_CASE("very hot is uniform over what can be drawn, and no hotter") {
  const std::vector<float> some{0, -std::numeric_limits<float>::infinity(), 3};
  decode::Sampler hot({.temperature = 1e300, .top_p = 0.9});
  const auto candidates = hot.weigh(some.data(), 3);
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].weight == doctest::Approx(candidates[1].weight));
  CHECK_THROWS_WITH_AS(decode::Sampler({.temperature = std::numeric_limits<double>::infinity()}),
                       "the temperature must be at least 0, and finite", Error);
}

/// What temperature, top_k and top_p leave, by sorting all.
std::vector<double> by_sorting(const std::vector<float>& given, const Sampling& sampling) {
  std::vector<std::size_t> order(given.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return given[a] > given[b]; });
  if (sampling.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(sampling.top_k)));
  const auto weight = [&](std::size_t i) {
    return std::exp((static_cast<double>(given[i]) - given[order[0]]) / sampling.temperature);
  };
  double total = 0, kept = 0;
  for (const std::size_t i : order) total += weight(i);
  std::vector<double> left(given.size());
  for (const std::size_t i : order) {
    if (kept >= sampling.top_p * total) break;
    kept += left[i] = weight(i);
  }
  for (double& each : left) each /= kept;
  return left;
}
}  // namespace

TEST_CASE("of very many tokens the same are left as by sorting all, with the same probabilities") {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> many(5003);
  for (float& logit : many) logit = std::round(normal(random) * 64) / 64;  // some are equal
  many[17] = -std::numeric_limits<float>::infinity();
  for (const Sampling& sampling : std::vector<Sampling>{{},
                                                        {.temperature = 0.7},
                                                        {.top_k = 1},
                                                        {.top_k = 40},
                                                        {.top_k = 900},
                                                        {.top_k = 5002},
                                                        {.top_p = 0.001},
                                                        {.top_p = 0.5},
                                                        {.temperature = 3, .top_p = 0.99},
                                                        {.top_k = 200, .top_p = 0.8}}) {
    CAPTURE(sampling.temperature);
    CAPTURE(sampling.top_k);
    CAPTURE(sampling.top_p);
    const std::vector<double> expected = by_sorting(many, sampling);
    decode::Sampler sampler(sampling);
    const auto candidates = sampler.weigh(many.data(), static_cast<std::int64_t>(many.size()));
    double sum = 0;
    for (const auto& candidate : candidates) sum += candidate.weight;
    CHECK(candidates.size() ==
          static_cast<std::size_t>(std::count_if(expected.begin(), expected.end(), [](double p) { return p > 0; })));
    double worst = 0;
    for (const auto& candidate : candidates)
      worst = std::max(worst, std::abs(candidate.weight / sum - expected[static_cast<std::size_t>(candidate.token)]));
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("a draw from all tokens is the first at which the sum of weights passes a share that is drawn") {
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  for (const std::int64_t classes : {1, 63, 64, 65, 200, 1000})
    for (const double temperature : {0.1, 1.0, 30.0}) {
      std::vector<float> many(static_cast<std::size_t>(classes));
      for (float& each : many)
        each = random() % 5 == 0 && classes > 1 ? -std::numeric_limits<float>::infinity() : 4 * normal(random);
      const ArrayView view(many.data(), Dtype::float32, Layout::dense({classes}));
      decode::Sampler sampler({.temperature = temperature, .seed = 9});
      bool equal = true;
      for (std::uint64_t i = 0; i < 300; ++i) {
        constexpr std::uint64_t parts = std::uint64_t{1} << 53;
        const double share = static_cast<double>(draw_below(parts, 9, 5, i)) / static_cast<double>(parts);
        const auto& candidates = sampler.weigh(many.data(), classes);
        double sum = 0, below = 0;
        for (const auto& candidate : candidates) sum += candidate.weight;
        auto at = candidates.begin();
        while ((below += at->weight) <= share * sum) ++at;
        const std::int32_t expected = at->token;
        equal = equal && sampler.draw(view, i) == expected;
      }
      CHECK(equal);
    }
}

TEST_CASE("streams of one seed draw apart") {
  const ArrayView view(logits.data(), Dtype::float64, Layout::dense({4}));
  decode::Sampler sampler({.seed = 3});
  int differing = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(sampler.draw(view, i) == sample(logits, {.seed = 3}, i));
    differing += sampler.draw(view, i) != sampler.draw(view, i, 1);
  }
  CHECK(differing > 20);
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

TEST_CASE("the sampling of a folder is that of its generation_config.json, and otherwise what the caller says") {
  const test::Folder folder;
  const Sampling otherwise = {.temperature = 0.25, .top_k = 7, .top_p = 0.75, .seed = 9};
  const auto read = [&](const std::string& text) {
    folder.write("generation_config.json", text);
    const Sampling sampling = published_sampling(folder.path(), otherwise);
    CHECK(sampling.seed == 9);
    return std::tuple(sampling.temperature, sampling.top_k, sampling.top_p);
  };
  CHECK(published_sampling(folder.path(), otherwise).top_k == 7);
  CHECK(read("{}") == std::tuple(0.25, 7, 0.75));
  CHECK(read(R"({"temperature": 0.5, "top_k": null})") == std::tuple(0.5, 7, 0.75));
  CHECK(read(R"({"do_sample": true, "top_k": 3, "top_p": 0.5})") == std::tuple(0.25, 3, 0.5));
  CHECK(read(R"({"do_sample": false, "temperature": 0.5, "top_p": 1})") == std::tuple(0.0, 7, 1.0));
  for (const char* wrong : {R"({"temperature": -1})", R"({"temperature": NaN})", R"({"top_k": 0.5})", R"({"top_p": 0})",
                            R"({"top_p": 1.5})", R"({"do_sample": 1})", "[]", ""})
    CHECK_THROWS_WITH_AS(read(wrong), doctest::Contains("generation_config.json"), FileError);
}
