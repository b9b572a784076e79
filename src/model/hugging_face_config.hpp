/// Keys of a config.json. A key may lie inside others: "rope_parameters.rope_theta".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hugging_face_mapping.hpp"
#include "json_text.hpp"

namespace xtape::model {

/// The value of a key; nothing where it is missing or null.
std::optional<JsonNode> find_key(const JsonNode& config, const std::string& key);
const Json* find_key(const Json& config, const std::string& key);

/// Sets a key, and makes the objects that it lies in.
void set_key(Json& config, const std::string& key, Json value);

/// Removes a key, and the objects that it leaves empty.
void erase_key(Json& config, const std::string& key);

/// The keys of a config that neither the mapping nor every model knows, and that are not null.
std::vector<std::string> unlisted_keys(const HuggingFaceMapping& mapping, const Json& config);

}  // namespace xtape::model
