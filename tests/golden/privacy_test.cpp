// The privacy accountant against Opacus, in privacy.json.
#include "xtape/privacy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/text.hpp"

using namespace xtape;

TEST_CASE("privacy: divergences, epsilon and its order are those of Opacus") {
  const auto json = nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/privacy.json"));
  REQUIRE(json.at("cases").size() == 11);
  for (const auto& expected : json.at("cases")) {
    CAPTURE(expected.at("updates"));
    PrivacyAccountant accountant, shown(expected.at("orders").get<std::vector<double>>());
    for (const auto& update : expected.at("updates"))
      for (PrivacyAccountant* each : {&accountant, &shown})
        each->count(update[0].get<double>(), update[1].get<double>(), update[2].get<std::int64_t>());
    const PrivacySpent spent = accountant.spent(expected.at("delta").get<double>());
    CHECK(spent.epsilon == doctest::Approx(expected.at("epsilon").get<double>()).epsilon(1e-9));
    CHECK(spent.order == expected.at("order").get<double>());
    const auto divergences = expected.at("divergences").get<std::vector<double>>();
    REQUIRE(shown.divergences().size() == divergences.size());
    for (std::size_t i = 0; i < divergences.size(); ++i)
      CHECK(shown.divergences()[i] == doctest::Approx(divergences[i]).epsilon(1e-8));
  }
}

TEST_CASE("privacy: updates add up, and more noise or fewer examples never reveal more") {
  PrivacyAccountant once, often;
  once.count(1.1, 0.02, 300);
  for (int i = 0; i < 300; ++i) often.count(1.1, 0.02);
  CHECK(once.epsilon(1e-5) == doctest::Approx(often.epsilon(1e-5)).epsilon(1e-12));
  const auto epsilon = [](double noise, double rate) {
    PrivacyAccountant accountant;
    accountant.count(noise, rate, 10);
    return accountant.epsilon(1e-5);
  };
  double before = std::numeric_limits<double>::infinity();
  for (const double noise : {1e-3, 0.05, 0.3, 0.7, 1.0, 3.0, 30.0, 1e3, 1e9, 1e200}) {
    CAPTURE(noise);
    CHECK(epsilon(noise, 0.01) <= before);
    CHECK(std::isfinite(epsilon(noise, 0.01)));
    before = epsilon(noise, 0.01);
  }
  before = 0;
  for (const double rate : {0.0, 1e-300, 1e-12, 1e-4, 0.1, 0.49, 0.5, 0.51, 0.999, 1.0}) {
    CAPTURE(rate);
    CHECK(epsilon(1.0, rate) >= before);
    CHECK(std::isfinite(epsilon(1.0, rate)));
    before = epsilon(1.0, rate);
  }
}

TEST_CASE("privacy: the divergence grows with the order, also where the series does not converge") {
  std::vector<double> orders;
  for (int i = 1; i < 400; ++i) orders.push_back(1 + i / 20.0);
  for (const double noise : {0.02, 0.3, 1.0, 20.0, 1e6})
    for (const double rate : {1e-6, 0.01, 0.5, 0.97}) {
      CAPTURE(noise);
      CAPTURE(rate);
      PrivacyAccountant accountant(orders);
      accountant.count(noise, rate);
      const std::vector<double>& found = accountant.divergences();
      for (std::size_t i = 0; i + 1 < found.size(); ++i) {
        CAPTURE(orders[i]);
        CHECK(found[i] <= found[i + 1] + 1e-9 * (1 + found[i + 1]));
      }
    }
}

TEST_CASE("privacy: without noise there is no bound, without updates nothing is revealed") {
  PrivacyAccountant accountant;
  CHECK(accountant.epsilon(1e-5) == 0);
  accountant.count(0, 0.5, 0);
  CHECK(accountant.epsilon(1e-5) == 0);
  accountant.count(0, 0.5);
  CHECK(accountant.epsilon(1e-5) == std::numeric_limits<double>::infinity());
  PrivacyAccountant tiny;
  tiny.count(1e-200, 0.5);
  CHECK(tiny.epsilon(1e-5) == std::numeric_limits<double>::infinity());
}

TEST_CASE("privacy: errors") {
  PrivacyAccountant accountant;
  const double nan = std::nan("");
  for (const double bad : {-1.0, nan, HUGE_VAL}) CHECK_THROWS_AS(accountant.count(bad, 0.5), Error);
  for (const double bad : {-0.1, 1.1, nan}) CHECK_THROWS_AS(accountant.count(1, bad), Error);
  CHECK_THROWS_WITH_AS(accountant.count(1, 0.5, -1), doctest::Contains("updates must be at least 0, got -1"), Error);
  CHECK(accountant.epsilon(0.5) == 0);
  for (const double bad : {0.0, 1.0, -1.0, nan}) CHECK_THROWS_AS(accountant.spent(bad), Error);
  for (const double bad : {1.0, 0.5, nan, HUGE_VAL}) CHECK_THROWS_AS(PrivacyAccountant({bad}), Error);
}
