/// Tokenizers of model folders in the format of the Hugging Face Hub.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json/json_text.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// Returns the result of `read`. Its errors begin with the path of the file.
template <class Read>
auto of_file(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(path + ": " + error.what());
  }
}

Json json_of(const PublishedTokens& published);
PublishedTokens read_published(const JsonNode& node);

/// Returns the text to show for a token without a piece.
std::string unnamed_piece(std::int32_t token);

/// Reads the tokenizer of a folder: see load_tokenizer. If `target` is true, the tokenizer is for the text that a
/// decoder produces. Such a text starts with the decoder's start token.
std::unique_ptr<Tokenizer> published_tokenizer(const std::string& folder, bool target);

}  // namespace xtape
