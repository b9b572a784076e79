/// Reads the models of tokenizer.json.
#pragma once

#include <memory>

#include "data/tokenizers/byte_pairs.hpp"
#include "base/json/json_text.hpp"

namespace xtape {

/// Returns the pieces by token. An unused token has the piece "". A `dense` vocabulary must have no unused tokens.
std::vector<std::string> read_pieces(const JsonNode& vocabulary, bool dense);

/// Returns the model of the entry "model": BPE, Unigram or WordPiece. If `by_bytes`, words consist of bytes. Throws
/// FileError at an unsupported entry.
std::unique_ptr<WordModel> read_model(const JsonNode& model, bool by_bytes);

}  // namespace xtape
