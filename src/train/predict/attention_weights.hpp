/// Attention weights and the tokens to which they belong.
#pragma once

#include <string>
#include <vector>

#include "train/run/run_data.hpp"

namespace xtape::train {

/// Throws Error if the model has no function `attention`.
void check_attention(const Model& model);

/// Implements Run::attention for a pair. `produced` contains the target's tokens in the order of production, with the
/// end token last.
std::vector<Attention> attention(Model& model, const Tokenizers& tokenizers, const std::string& source,
                                 const Tokens& produced);
/// Implements Run::attention for one text.
std::vector<Attention> attention(Model& model, const Tokenizer& tokenizer, const std::string& text);

/// Returns the target's tokens and the end token, without the start token, which the model reads but does not produce.
Tokens produced(const Tokenizer& tokenizer, const std::string& target);

}  // namespace xtape::train
