/// Initial values of weights.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array.hpp"

namespace xtape::model {

/// Settings of an initialiser, with their defaults. A default of NaN is computed from the shape.
using Settings = std::vector<std::pair<std::string, double>>;

struct Initialiser {
  std::string name;   ///< zeros, ones, constant, normal, truncated_normal, uniform, glorot_uniform, …
  Settings settings;  ///< The settings that are given; others have their defaults.
};

/// The settings of the initialiser of that name; null if there is none.
const Settings* initialiser_settings(const std::string& name);
std::vector<std::string> initialiser_names();
std::string to_string(const Initialiser& initialiser);  ///< "normal(std=0.02)".

/// Fills `array` (float32 or float64; float32 gets the float64 numbers, rounded). The numbers are a function of
/// (seed, name, element): they do not depend on the order in which weights are made or on the number of threads.
void initialise(Array& array, const Initialiser& initialiser, std::uint64_t seed, const std::string& name);

}  // namespace xtape::model
