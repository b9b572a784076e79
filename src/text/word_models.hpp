/// Reading the models of tokenizer.json.
#pragma once

#include <memory>

#include "byte_pairs.hpp"
#include "json_text.hpp"

namespace xtape {

/// The pieces by token; "" for an unused token, of which a vocabulary that is `dense` has none.
std::vector<std::string> read_pieces(const JsonNode& vocabulary, bool dense);

/// The model of the entry "model": BPE, Unigram or WordPiece. `by_bytes`: words are made of bytes. Throws FileError at
/// what is not supported.
std::unique_ptr<WordModel> read_model(const JsonNode& model, bool by_bytes);

}  // namespace xtape
