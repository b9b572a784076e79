/// The small files of a folder as the Hugging Face Hub has them.
#pragma once

#include <memory>
#include <string>

#include "json_source.hpp"

namespace xtape::model {

inline constexpr const char* config_file = "config.json";

/// The config of `folder`. Throws FileError where there is none, and DefinitionError where it is no JSON object.
std::shared_ptr<const JsonSource> read_config(const std::string& folder);

}  // namespace xtape::model
