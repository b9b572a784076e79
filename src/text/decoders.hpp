/// The decoders of a tokenizer.json: from the pieces of tokens to a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json_text.hpp"

namespace xtape {

/// Changes the pieces of a text; what is left is joined.
using Decoder = std::function<void(std::vector<std::string>&)>;

/// The decoders of the entry "decoder", in the order in which they apply. Throws FileError at a decoder that is not
/// supported.
std::vector<Decoder> read_decoders(const JsonNode& node);
/// The decoder of pieces that are written with the symbols of bytes.
Decoder byte_decoder();

}  // namespace xtape
