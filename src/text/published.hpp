/// Tokenizers of folders as the Hugging Face Hub has them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "json_text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

Json json_of(const PublishedTokens& published);
PublishedTokens read_published(const JsonNode& node);

/// How a token without a piece is shown.
std::string unnamed_piece(std::int32_t token);

/// The tokenizer of a folder; null where it has none of the files that are known here. `target`: for what a decoder
/// writes.
std::unique_ptr<Tokenizer> published_tokenizer(const std::string& folder, bool target);

}  // namespace xtape
