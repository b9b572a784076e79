#include <doctest/doctest.h>

#include <cmath>

#include "source_root.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
/// The model depends on all earlier tokens, so its loss depends on where a window begins.
Model model_of_texts() {
  ModelOptions options;
  options.dtype = Dtype::float64;
  options.seed = 5;
  options.hyper = {{"vocab_size", "13"}, {"n_positions", "16"}, {"n_embd", "8"},
                   {"n_layer", "1"},     {"n_head", "2"},       {"std", "0.5"}};
  return Model::load(source_root() + "/models/gpt2.json", options);
}

Tokens text_of(std::size_t length) {
  Tokens tokens;
  for (std::size_t i = 0; i < length; ++i) tokens.push_back(static_cast<std::int32_t>((i * i + i / 3) % 13));
  return tokens;
}

/// -log p(tokens[last] | tokens[first, last)), with one row played for each call.
double surprise(Model& model, const Tokens& tokens, std::size_t first, std::size_t last) {
  const Array seen = token_array({Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                         tokens.begin() + static_cast<std::ptrdiff_t>(last))});
  const Array logits = model.play("logits", {{"tokens", seen}}).at("logits");
  const double* row = logits.as<double>() + (logits.shape()[1] - 1) * 13;
  double sum = 0;
  for (int i = 0; i < 13; ++i) sum += std::exp(row[i]);
  return std::log(sum) - row[tokens[last]];
}
}  // namespace

TEST_CASE("the loss of a text sums over every token, given the tokens before it in its window") {
  Model model = model_of_texts();
  for (const std::size_t length : {2, 9, 16, 17, 40, 41})
    for (const std::size_t context : {2, 7, 16})
      for (const std::size_t stride : {1, 2, 5, 7, 16}) {
        if (stride > context) continue;
        CAPTURE(length);
        CAPTURE(context);
        CAPTURE(stride);
        const Tokens tokens = text_of(length);
        // The definition: for each window, the tokens that no earlier window contains.
        double total = 0;
        std::int64_t count = 0;
        std::size_t held = 0;
        for (std::size_t begin = 0; held < length; begin += stride) {
          const std::size_t end = std::min(begin + context, length);
          for (std::size_t i = std::max(held, begin + 1); i < end; ++i) {
            total += surprise(model, tokens, begin, i);
            ++count;
          }
          held = end;
        }
        const TextEvaluation found =
            evaluate_text(model, tokens, {static_cast<std::int64_t>(context), static_cast<std::int64_t>(stride)});
        CHECK(found.tokens == count);
        CHECK(found.loss == doctest::Approx(total / static_cast<double>(count)).epsilon(1e-9));
        if (stride < context) CHECK(count == static_cast<std::int64_t>(length) - 1);
      }
}

TEST_CASE("windows must have a token to predict") {
  Model model = model_of_texts();
  CHECK_THROWS_WITH_AS(evaluate_text(model, text_of(9), {1, 1}),
                       "a window needs at least 2 tokens, one to read and one to predict, not 1", Error);
  CHECK_THROWS_WITH_AS(evaluate_text(model, text_of(9), {4, 5}),
                       "the stride of windows must be 1 to their length of 4, not 5", Error);
  CHECK_THROWS_AS(evaluate_text(model, text_of(9), {4, 0}), Error);
  CHECK_THROWS_WITH_AS(evaluate_text(model, text_of(1), {4, 2}),
                       "a text of 1 tokens has no token to predict: it needs at least 2", Error);
}
