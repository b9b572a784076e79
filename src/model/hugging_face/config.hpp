/// Keys of a config.json. Dots separate the keys of nested objects and the indices of list elements:
/// "rope_parameters.rope_theta", "time_step_limit.1".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "model/hugging_face/mapping.hpp"

namespace xtape::model {

/// Returns the value of a key. The value may be a JSON null. Returns nullopt or nullptr if the key, or an object that
/// contains the key, is missing.
std::optional<JsonNode> find_key(const JsonNode& config, const std::string& key);
const Json* find_key(const Json& config, const std::string& key);

/// Whether a value of a config turns nothing on: null, false, or an empty list or object.
bool is_off(const Json& value);

/// Returns the words of a text, which are separated by spaces.
std::vector<std::string> words_in(const std::string& text);

/// Returns whether a word of a key is the index of a list element.
bool is_element(const std::string& word);

/// Returns the number if the value is a number in the form of transformers 5, {"__float__": "Infinity"}. Otherwise
/// returns the value itself.
Json plain(const Json& value);

/// Returns the config.json value for a text of a mapping: null, a flag, a number, or else a string.
Json word_of(const std::string& text);
/// Returns whether the text of a mapping stands for `value`.
bool is_word(const Json& value, const std::string& text);
/// Converts a value of a config to the text of an override. A string loses its quotes, and an infinity becomes the
/// expression "inf" or "-inf". NaN has no expression and becomes "NaN". Other values keep their JSON text.
std::string to_text(const Json& value);

/// Sets a key. Creates the objects and lists that contain the key.
void set_key(Json& config, const std::string& key, Json value);

/// Removes a key, and objects that become empty.
void erase_key(Json& config, const std::string& key);

/// Returns the keys of a config that are not null, not mentioned in the mapping, and not ignored for every model.
std::vector<std::string> unlisted_keys(const HuggingFaceMapping& mapping, const Json& config);
/// Returns the keys of a generation_config.json that change what transformers generates, and are not read.
std::vector<std::string> unlisted_generation_keys(const JsonNode& config);

}  // namespace xtape::model
