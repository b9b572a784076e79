/// Reads BERT's tokenizer from vocab.txt.
#pragma once

#include <string>
#include <vector>

#include "json_text.hpp"

namespace xtape {

/// Returns BERT's tokenizer.json for the lines of a vocabulary, one piece per line, and for a tokenizer_config.json,
/// which may be an empty node. Throws FileError if the vocabulary lacks a special token.
std::string bert_json(const std::vector<std::string>& lines, const JsonNode& config);

}  // namespace xtape
