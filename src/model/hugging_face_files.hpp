/// The config file of a folder in the format of the Hugging Face Hub.
#pragma once

#include <string>

#include "json_text.hpp"

namespace xtape::model {

inline constexpr const char* config_file = "config.json";

/// Reads the config of `folder`. Throws FileError if there is none, and DefinitionError if it is not a JSON object.
JsonNode read_config(const std::string& folder);

}  // namespace xtape::model
