/// Greedy answers of a model, and measures of how many are right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rank_group.hpp"
#include "run_data.hpp"

namespace xtape::train {

/// The tokens of a text that is to be continued, after the start token if the data's rows begin with one.
Tokens prompt_tokens(const Recipe& recipe, const Tokenizer& tokenizer, const std::string& text);

/// Continues each prompt (`answers.source`) greedily with the model's function `logits(tokens)`. Generates at most as
/// many tokens as the longest target needs. `columns` is the context length. The ranks of the group share the prompts.
/// `between` is called before every token; an exception that it throws propagates.
std::vector<std::string> continued(const Recipe& recipe, Model& model, const Tokenizer& tokenizer,
                                   const PairTexts& answers, std::int64_t columns,
                                   ranks::RankGroup& group, const std::function<void()>& between);

/// Compares the answers `made` with the `right` ones by the measures that the recipe requests (BLEU, exact match), and
/// stores the results in `evaluation`.
void compare(const Recipe& recipe, const std::vector<std::string>& made, const std::vector<std::string>& right,
             Evaluation& evaluation);

}  // namespace xtape::train
