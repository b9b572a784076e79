/// BERT's tokenizer from vocab.txt.
#pragma once

#include <string>
#include <vector>

#include "json_text.hpp"

namespace xtape {

/// The tokenizer.json of BERT for a vocabulary with a piece a line, and a tokenizer_config.json, which may be an empty
/// node. Throws FileError if the vocabulary lacks a special token.
std::string bert_json(const std::vector<std::string>& lines, const JsonNode& config);

}  // namespace xtape
