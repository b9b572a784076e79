/// Attention weights beside their tokens.
#pragma once

#include <string>
#include <vector>

#include "run_data.hpp"

namespace xtape::train {

/// Throws Error where the model has no function `attention`.
void check_attention(const Model& model);

/// As Run::attention has it: of a pair, whose target is given as the tokens that are produced, the end token last …
std::vector<Attention> attention(Model& model, const Tokenizers& tokenizers, const std::string& source,
                                 const Tokens& produced);
/// … and of one text.
std::vector<Attention> attention(Model& model, const Tokenizer& tokenizer, const std::string& text);

/// The tokens of a target without the start token, which is read and not produced.
Tokens produced(const Tokenizer& tokenizer, const std::string& target);

}  // namespace xtape::train
