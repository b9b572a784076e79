/// Lines in, translated lines out.
#pragma once

#include "run_data.hpp"
#include "xtape/predict.hpp"

namespace xtape::train {

/// Translates every line by the model's function `logits(source, tokens)`, which the predictor plays where the options
/// ask for caches. `positions` is how many tokens the model can read or write at most; 0: no limit of its own.
std::vector<Translation> translate(Model& model, Predictor& predictor, const Tokenizers& tokenizers,
                                   const std::vector<std::string>& lines, SearchOptions options,
                                   std::int64_t positions);

}  // namespace xtape::train
