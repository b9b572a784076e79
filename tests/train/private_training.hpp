/// A small private training of sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiny.hpp"
#include "xtape/privacy.hpp"

namespace private_training {
using namespace xtape;

inline constexpr int training_rows = 80;

/// The sums as rows; a token is a character.
inline DataRows sum_rows(std::size_t first, std::size_t last) {
  const CharacterTokenizer tokenizer(tiny::sums_text());
  DataRows rows = {{{"text", Column::Kind::target, 0}}, {}};
  const std::vector<std::string> sums = tiny::sums();
  for (std::size_t i = first; i < last; ++i)
    rows.rows.push_back({{tokenizer.encode(sums[i] + "\n"), {}, std::vector<bool>(4, true)}});
  return rows;
}

/// A small private training.
struct Private {
  explicit Private(std::int64_t rows, std::int64_t accumulate = 1, const std::string& rate = "0",
                   const std::string& width = "16")
      : batches(sum_rows(0, training_rows), sum_rows(training_rows, 100),
                {.rows = rows, .bucket = 1, .seed = 9, .draws = accumulate}),
        model(Model::parse(tiny::definition, {.hyper = {{"rate", rate}, {"width", width}}, .seed = 5}, "tiny.json")) {
    options.optimizer.kind = OptimizerOptions::Kind::sgd;
    options.schedule.rate = 1;
    options.accumulate = accumulate;
    options.seed = 9;
    options.threads = 1;
    options.privacy = {.clip_norm = 0.3, .noise_multiplier = 0, .delta = 1e-3};
  }
  Private(Private&&) = delete;  // a trainer refers to its members
  Trainer trainer() { return {model, batches, options}; }
  RowBatches batches;
  Model model;
  TrainerOptions options;
};

}  // namespace private_training
