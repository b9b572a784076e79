/// The table of initialisers for definitions.
#pragma once

#include <string>
#include <vector>

#include "xtape/init.hpp"

namespace xtape {

/// Returns the settings of the initialiser with this name and their defaults, or null if there is none.
const Initialiser::Settings* initialiser_settings(const std::string& name);
std::vector<std::string> initialiser_names();
std::string to_string(const Initialiser& initialiser);  ///< "normal(std=0.02)".

}  // namespace xtape
