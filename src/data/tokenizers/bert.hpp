/// Reads BERT's tokenizer from vocab.txt.
#pragma once

#include <string>
#include <vector>

#include "base/json/json_text.hpp"

namespace xtape {

/// Returns a tokenizer.json for BERT's tokenizer. `lines` are the lines of vocab.txt, one piece per line. `config` is
/// the content of tokenizer_config.json, or an empty node. Throws FileError if the vocabulary lacks a special token.
std::string bert_json(const std::vector<std::string>& lines, const JsonNode& config);

}  // namespace xtape
