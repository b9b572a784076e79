/// Small Transformers, sentences for them, and playing them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "definitions.hpp"
#include "source_root.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::test::transformer {
inline const std::string definition = source_root() + "/models/transformer.json";
inline constexpr std::int64_t vocabulary = 11;

using Settings = std::vector<std::pair<std::string, std::string>>;
using Rows = xt::xtensor<std::int64_t, 2>;
using Values = xt::xarray<double>;

inline Model load(const Settings& more = {}, Dtype dtype = Dtype::float64) {
  ModelOptions options;
  options.dtype = dtype;
  options.seed = 3;
  options.hyper = {{"d_model", "8"},        {"d_ff", "12"},          {"heads", "2"},
                   {"encoder_layers", "2"}, {"decoder_layers", "2"}, {"source_vocab_size", std::to_string(vocabulary)}};
  for (const auto& [name, value] : more) {
    const auto same = [&name = name](const auto& each) { return each.first == name; };
    options.hyper.erase(std::remove_if(options.hyper.begin(), options.hyper.end(), same), options.hyper.end());
    options.hyper.emplace_back(name, value);
  }
  Model model = Model::load(definition, options);
  // Biases and norms away from their start, so that each of them shows.
  for (const Store::Entry& entry : model.weights()) {
    if (entry.value.shape().size() != 1 || dtype != Dtype::float64) continue;
    Array weight(entry.value);
    for (std::int64_t i = 0; i < weight.count(); ++i)
      weight.as<double>()[i] += 0.2 * std::sin(static_cast<double>(i + std::ssize(entry.name)));
  }
  return model;
}

/// Sentences of these lengths, padded to `size`. The tokens are 1 and more, never padding.
inline Rows sentences(const std::vector<std::int64_t>& lengths, std::int64_t size, std::int64_t seed) {
  Rows made = Rows::from_shape({lengths.size(), static_cast<std::size_t>(size)});
  for (std::int64_t row = 0; row < std::ssize(lengths); ++row)
    for (std::int64_t i = 0; i < size; ++i)
      made(row, i) = i < lengths[static_cast<std::size_t>(row)] ? 1 + (i * i + 3 * i + 5 * row + seed) % 10 : 0;
  return made;
}

struct Example {
  Rows source = sentences({5, 3}, 5, 1);
  Rows tokens = sentences({3, 4}, 4, 2);
  Rows targets = sentences({3, 4}, 4, 7);
  Example() {
    for (std::int64_t& target : targets)
      if (target == 0) target = -1;
  }
};

/// What the losses and the accuracy sum of logits, by hand.
struct Sums {
  double smoothed = 0, plain = 0, right = 0, count = 0;
};

/// Smoothed by 0.3 over all classes, or over all but class 0.
inline Sums sums_by_hand(const Values& logits, const Rows& targets, bool excludes) {
  Sums sums;
  for (std::size_t b = 0; b < targets.shape()[0]; ++b)
    for (std::size_t t = 0; t < targets.shape()[1]; ++t) {
      if (targets(b, t) == -1) continue;
      double sum = 0, spread = 0;
      std::size_t best = 0;
      for (std::size_t v = 0; v < vocabulary; ++v) {
        sum += std::exp(logits(b, t, v));
        if (logits(b, t, v) > logits(b, t, best)) best = v;
      }
      for (std::size_t v = excludes ? 1 : 0; v < vocabulary; ++v) spread += std::log(sum) - logits(b, t, v);
      const double one = std::log(sum) - logits(b, t, static_cast<std::size_t>(targets(b, t)));
      sums.plain += one;
      sums.smoothed += 0.7 * one + 0.3 * spread / static_cast<double>(excludes ? vocabulary - 1 : vocabulary);
      sums.right += static_cast<std::int64_t>(best) == targets(b, t) ? 1 : 0;
      sums.count += 1;
    }
  return sums;
}

inline std::int64_t length(const Rows& rows) {
  return static_cast<std::int64_t>(rows.shape()[1]);
}

inline std::vector<Values> play(const Model& model, const std::string& function, const Rows& source, const Rows& tokens,
                                const Rows& targets = {}) {
  std::vector<ArrayView> feeds = {source, tokens};
  if (targets.size() != 0) feeds.emplace_back(targets);
  return test::play(model, function,
                    {{"b", static_cast<std::int64_t>(source.shape()[0])}, {"s", length(source)}, {"t", length(tokens)}},
                    feeds);
}

inline Values logits(const Model& model, const Rows& source, const Rows& tokens) {
  return play(model, "logits", source, tokens)[0];
}

inline Rows row(const Rows& rows, std::size_t which) {
  Rows one = Rows::from_shape({1, rows.shape()[1]});
  for (std::size_t i = 0; i < rows.shape()[1]; ++i) one(0, i) = rows(which, i);
  return one;
}

inline Rows first(const Rows& rows, std::size_t size) {
  Rows cut = Rows::from_shape({rows.shape()[0], size});
  for (std::size_t r = 0; r < rows.shape()[0]; ++r)
    for (std::size_t i = 0; i < size; ++i) cut(r, i) = rows(r, i);
  return cut;
}

/// The largest difference between a row's logits of the first `size` tokens.
inline double difference(const Values& a, std::size_t row_a, const Values& b, std::size_t row_b, std::size_t size) {
  double worst = 0;
  for (std::size_t t = 0; t < size; ++t)
    for (std::size_t v = 0; v < vocabulary; ++v) worst = std::max(worst, std::abs(a(row_a, t, v) - b(row_b, t, v)));
  return worst;
}

/// Every variant once, each with something else beside it.
inline const std::vector<Settings> variants = {
    {},
    {{"norm_first", "true"}, {"positions", "concatenated"}, {"embedding_init", "glorot_uniform"}},
    {{"attention", "single_head"}, {"skip_first_self_attention", "true"}, {"output_bias", "true"}},
    {{"shared_embeddings", "false"}, {"tied_output", "false"}, {"target_vocab_size", "11"}, {"final_norm", "true"}},
    {{"positions", "learned"}, {"max_positions", "9"}, {"bias", "false"}, {"scale_embeddings", "false"}},
};
}  // namespace xtape::test::transformer
