/// What a model answers, greedily, and how much of it is right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run_data.hpp"

namespace xtape::train {

/// The tokens of a text that is to be continued: behind the start token, where rows begin with one.
Tokens prompt_tokens(const Recipe& recipe, const Tokenizer& tokenizer, const std::string& text);

/// What the model's function `logits(tokens)` says behind each source, a prompt; no more than the longest target needs.
/// `columns` is how many tokens it sees at once. `between` is called before every token; what it throws ends it.
std::vector<std::string> continued(const Recipe& recipe, Model& model, const Tokenizer& tokenizer,
                                   const PairTexts& answers, std::int64_t columns,
                                   const std::function<void()>& between);

/// Compares what was made with what is right, in the ways that the recipe asks for.
void compare(const Recipe& recipe, const std::vector<std::string>& made, const std::vector<std::string>& right,
             Evaluation& evaluation);

}  // namespace xtape::train
