/// The files of runs, for comparisons.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "train/run/checkpoint.hpp"
#include "xtape/text.hpp"

/// Whether the files of two checkpoints are equal.
inline bool same_bits(const std::string& a, const std::string& b) {
  const auto same = [&](const char* file) { return xtape::read_text(a + file) == xtape::read_text(b + file); };
  return same("/weights.safetensors") && same("/optimizer.safetensors") && same("/state.json");
}

/// The names of a run's checkpoints.
inline std::vector<std::string> names(const std::string& run) {
  std::vector<std::string> list;
  for (const std::string& path : xtape::train::checkpoints(run + "/checkpoints"))
    list.push_back(std::filesystem::path(path).filename().string());
  return list;
}

/// The lines of a run's metrics, without times.
inline std::vector<nlohmann::json> metrics(const std::string& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(xtape::read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("seconds");
    lines.back().erase("tokens_per_s");
  }
  REQUIRE(!lines.empty());  // so that no two runs are alike for want of lines
  return lines;
}

/// The lines of evaluations.
inline std::vector<nlohmann::json> evaluations(const std::string& run) {
  std::vector<nlohmann::json> lines = metrics(run);
  std::erase_if(lines, [](const nlohmann::json& line) { return !line.contains("validation_loss"); });
  REQUIRE(!lines.empty());
  return lines;
}
