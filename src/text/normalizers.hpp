/// The normalizers of a tokenizer.json: what is done to a text before it is split into words.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json_text.hpp"

namespace xtape {

/// From a text in UTF-8 to another.
using Normalizer = std::function<std::string(const std::string&)>;

/// The normalizers of the entry "normalizer", in the order in which they apply. Throws FileError at a normalizer that
/// is not supported.
std::vector<Normalizer> read_normalizers(const JsonNode& node);

}  // namespace xtape
