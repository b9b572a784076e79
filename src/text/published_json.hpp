/// Reading the entries of a tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "json_text.hpp"
#include "word_pattern.hpp"

namespace xtape {

/// Whether an entry is missing, null, false or "".
bool is_unset(const JsonNode& object, const char* key);
/// The flag at a key; `missing` if the entry is missing or null.
bool flag_of(const JsonNode& object, const char* key, bool missing);
/// The text at a key; `missing` if the entry is missing or null.
std::string text_of(const JsonNode& object, const char* key, const std::string& missing);
/// The elements of a "Sequence" (and of Sequences in it), or the node itself if it is not one.
std::vector<JsonNode> parts_of(const JsonNode& node, const char* list);
/// The token at a node.
std::int32_t read_token(const JsonNode& node);
/// The pattern {"Regex": …} or {"String": …}.
WordPattern read_pattern(const JsonNode& node);
/// Throws FileError: the "type" of the node is not supported.
[[noreturn]] void refuse_type(const JsonNode& node, const std::string& what, const std::string& supported);

}  // namespace xtape
