/// Keys of a config.json. Dots separate the keys of nested objects and the numbers of elements of lists:
/// "rope_parameters.rope_theta", "time_step_limit.1".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hugging_face/mapping.hpp"
#include "json_text.hpp"

namespace xtape::model {

/// The value of a key, which may be null; nullopt or nullptr if the key, or an object that contains it, is missing.
std::optional<JsonNode> find_key(const JsonNode& config, const std::string& key);
const Json* find_key(const Json& config, const std::string& key);

/// The words of a text, which spaces separate.
std::vector<std::string> words_in(const std::string& text);

/// Whether a word of a key is the number of an element of a list.
bool is_element(const std::string& word);

/// The value itself, or the number that transformers 5 writes as {"__float__": "Infinity"}.
Json plain(const Json& value);

/// The value of config.json that the text of a mapping means: null, a flag or a number, else a string.
Json word_of(const std::string& text);
/// Whether the text of a mapping means `value`.
bool is_word(const Json& value, const std::string& text);
/// A text without quotes, a flag, or a number as an expression: "inf". NaN, which no expression is, is "NaN".
std::string to_text(const Json& value);

/// Sets a key, and creates the objects and lists that contain it.
void set_key(Json& config, const std::string& key, Json value);

/// Removes a key, and the objects that become empty.
void erase_key(Json& config, const std::string& key);

/// The keys of a config that are not null, that the mapping does not mention, and that are not ignored for every model.
std::vector<std::string> unlisted_keys(const HuggingFaceMapping& mapping, const Json& config);

}  // namespace xtape::model
