/// Translates lines of text.
#pragma once

#include "ranks/rank_group.hpp"
#include "train/run/run_data.hpp"
#include "xtape/decode.hpp"

namespace xtape::train {

/// Translates every line with the model's function `logits(source, tokens)` and the searcher. `positions` is the
/// maximum number of tokens that the model can read or write; 0 means that the model has no limit. Each rank of the
/// group translates some of the batches of lines. All ranks receive all translations.
std::vector<Translation> translate(Searcher& searcher, const Tokenizers& tokenizers,
                                   const std::vector<std::string>& lines, SearchOptions options,
                                   std::int64_t positions, ranks::RankGroup& group);

}  // namespace xtape::train
