/// First values of weights.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array.hpp"

namespace xtape::model {

/// What an initialiser can be told, with defaults. A default of NaN stands for "from the shape".
using Settings = std::vector<std::pair<std::string, double>>;

struct Initialiser {
  std::string name;   ///< zeros, ones, constant, normal, truncated_normal, uniform, glorot_uniform, …
  Settings settings;  ///< Those that were given.
};

/// The settings of the initialiser of that name; null where there is none.
const Settings* initialiser_settings(const std::string& name);
std::vector<std::string> initialiser_names();
std::string to_string(const Initialiser& initialiser);  ///< "normal(std=0.02)".

/// Fills `array` (float32 or float64, the same numbers rounded). The numbers are a function of (seed, name, element):
/// the order in which weights are made and the number of threads do not matter.
void initialise(Array& array, const Initialiser& initialiser, std::uint64_t seed, const std::string& name);

}  // namespace xtape::model
