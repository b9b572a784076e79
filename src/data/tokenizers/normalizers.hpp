/// The normalizers of a tokenizer.json. They change a text before it is split into words.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"

namespace xtape {

/// Converts one UTF-8 text to another. Sets `first` to false if the new text begins with a character that does not stem
/// from the first character of the old text.
using Normalizer = std::function<std::string(const std::string&, bool& first)>;

/// Returns the normalizers of the entry "normalizer" in the order of their application. Throws FileError at an
/// unsupported normalizer.
std::vector<Normalizer> read_normalizers(const JsonNode& node);

}  // namespace xtape
