/// The decoders of a tokenizer.json, which turn the pieces of tokens into a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"

namespace xtape {

/// Changes the pieces of a text. After the last decoder, the pieces are joined.
using Decoder = std::function<void(std::vector<std::string>&)>;

/// Returns the decoders of the entry "decoder" in the order of their application. Throws FileError at an unsupported
/// decoder.
std::vector<Decoder> read_decoders(const JsonNode& node);
/// Returns the decoder of pieces that are written with byte symbols.
Decoder byte_decoder();

}  // namespace xtape
