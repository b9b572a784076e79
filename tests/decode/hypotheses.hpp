/// What searching finds: what it should score, and comparing it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "small_models.hpp"
#include "xtape/decode.hpp"

namespace small {

inline std::vector<double> log_softmax(const std::vector<double>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - top);
  std::vector<double> result;
  for (const double logit : logits) result.push_back(logit - top - std::log(sum));
  return result;
}

/// The log-probability of a target, from one pass of the model over the whole of it.
inline double scored(xtape::Model& model, const xtape::Tokens& source, const xtape::Hypothesis& hypothesis,
                     const xtape::SearchOptions& options) {
  std::vector<std::int64_t> targets(hypothesis.tokens.begin(), hypothesis.tokens.end());
  if (hypothesis.finished) targets.push_back(hypothesis.end);
  std::vector<std::int64_t> tokens = {options.start};
  tokens.insert(tokens.end(), targets.begin(), targets.end() - 1);
  const auto logits = all_logits(model, tokens, {source.begin(), source.end()});
  double total = 0;
  for (std::size_t i = 0; i < targets.size(); ++i)
    total += log_softmax(logits[i])[static_cast<std::size_t>(targets[i])];
  return total;
}

inline void check_equal(const std::vector<std::vector<xtape::Hypothesis>>& a,
                        const std::vector<std::vector<xtape::Hypothesis>>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      CHECK(a[i][k].tokens == b[i][k].tokens);
      CHECK(a[i][k].finished == b[i][k].finished);
      CHECK(a[i][k].end == b[i][k].end);
      CHECK(std::abs(a[i][k].score - b[i][k].score) < tolerance);
      CHECK(std::abs(a[i][k].log_probability - b[i][k].log_probability) < tolerance);
    }
  }
}

}  // namespace small
