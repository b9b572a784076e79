/// Generating tokens with a model.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 7
#error "this layer of xtape may not see the decode layer"
#endif

#include <cstdint>
#include <functional>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// How the next token is chosen from its logits. The three cuts apply in this order: temperature, top_k, top_p.
struct Sampling {
  double temperature = 1;  ///< Logits are divided by it; 0: always the most likely token.
  std::int64_t top_k = 0;  ///< Only the k most likely tokens; 0: all.
  double top_p = 1;  ///< Only the most likely tokens that together reach this probability (Holtzman et al., 2020).
  std::uint64_t seed = 0;
};

/// One token drawn from `logits`, whose classes are the tokens. Draw number `draw` of the sampling's seed: equal draws
/// give equal tokens. Equally likely tokens are cut in the order of their numbers. Throws Error where an option is out
/// of its range, or no logit is finite.
std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw);

/// The probabilities that `sample` draws by.
std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling);

struct GenerateOptions {
  std::int64_t tokens = 100;    ///< How many to generate.
  std::int64_t context = 1024;  ///< The most tokens that the model sees at once; older ones are forgotten.
  std::int32_t end_token = -1;  ///< Generation ends after this token; -1: there is none.
  Sampling sampling;
  /// Called with each token as it comes; true ends the generation.
  std::function<bool(std::int32_t)> each;
};

/// Continues `prompt` by the model's function `logits`, and returns what was generated. Every token plays the whole
/// context again, at a few fixed lengths. Throws Error where the prompt is empty.
Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options);

}  // namespace xtape
