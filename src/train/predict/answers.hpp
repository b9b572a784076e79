/// Greedy answers of a model, and measures of their correctness.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ranks/rank_group.hpp"
#include "train/run/run_data.hpp"

namespace xtape::train {

/// Returns the tokens of a prompt. They begin with the start token if the rows of the data do.
Tokens prompt_tokens(const Recipe& recipe, const Tokenizer& tokenizer, const std::string& text);

/// Returns the tokens that end a text in training or in the folder of the tokenizer.
Tokens end_tokens(const Tokenizer& tokenizer);

/// Continues each prompt (`answers.source`) greedily with the model's function `logits(tokens)`. Generates at most as
/// many tokens as the longest target needs. `columns` is the context length. Each rank of the group continues some of
/// the prompts, and every rank receives all answers. The function calls `between` before every token. An exception that
/// `between` throws propagates.
std::vector<std::string> continued(const Recipe& recipe, Model& model, const Tokenizer& tokenizer,
                                   const PairTexts& answers, std::int64_t columns, ranks::RankGroup& group,
                                   const std::function<void()>& between);

/// Compares the answers `made` with the correct answers `right` by the measures that the recipe requests (BLEU, exact
/// match). Stores the results in `evaluation`.
void compare(const Recipe& recipe, const std::vector<std::string>& made, const std::vector<std::string>& right,
             Evaluation& evaluation);

}  // namespace xtape::train
