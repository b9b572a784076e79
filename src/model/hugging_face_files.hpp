/// The small files of a folder as the Hugging Face Hub has them.
#pragma once

#include <string>

#include "json_text.hpp"

namespace xtape::model {

inline constexpr const char* config_file = "config.json";

/// The config of `folder`. Throws FileError where there is none, and DefinitionError where it is no JSON object.
JsonNode read_config(const std::string& folder);

}  // namespace xtape::model
