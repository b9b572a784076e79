#pragma once

#include "tiny.hpp"

namespace tiny {

/// The error of loading the recipe with this setting and others.
inline std::string complaint(const std::string& setting, const std::vector<std::string>& others = {}) {
  const Directory directory;
  std::vector<xtape::Setting> settings = {xtape::Setting::parse(setting)};
  for (const std::string& other : others) settings.push_back(xtape::Setting::parse(other));
  try {
    load(directory, settings);
  } catch (const xtape::DefinitionError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace tiny
