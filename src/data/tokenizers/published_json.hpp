/// Reads the entries of a tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tokenizers/word_pattern.hpp"
#include "xtape/error.hpp"

namespace xtape {

/// Returns whether an entry is missing, null, false or "".
bool is_unset(const JsonNode& object, const char* key);
/// Returns the flag at a key, or `missing` if the entry is missing or null.
bool flag_of(const JsonNode& object, const char* key, bool missing);
/// Returns the text at a key, or `missing` if the entry is missing or null.
std::string text_of(const JsonNode& object, const char* key, const std::string& missing);
/// Returns the elements of a "Sequence", including those of nested Sequences, or the node itself if it is not a
/// Sequence.
std::vector<JsonNode> parts_of(const JsonNode& node, const char* list);
/// Returns the result of `make`. Errors of `make` get the location of the node.
template <class Make>
auto at_node(const JsonNode& node, const Make& make) {
  try {
    return make();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    node.fail(error.what());
  }
}
/// Returns the text that replaces a space in "Metaspace".
std::string space_of(const JsonNode& node);
/// Returns where "Metaspace" adds a space: "always", "first" or "never".
std::string prepend_scheme(const JsonNode& node);
/// Returns the token at a node.
std::int32_t read_token(const JsonNode& node);
/// Returns the pattern {"Regex": …} or {"String": …}.
WordPattern read_pattern(const JsonNode& node);
/// Throws a FileError that the "type" of the node is not supported.
[[noreturn]] void refuse_type(const JsonNode& node, const std::string& what, const std::string& supported);

}  // namespace xtape
