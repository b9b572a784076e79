/// Reads an object of a recipe key by key. Reports keys that were not read as mistakes.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The range of an integer in a recipe, inclusive. The default `high` exceeds every reasonable count, and is small
/// enough that sums stay far below 2^63.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 1000000000000;
};

/// The range of a number in a recipe, and its description: "must be at least 0".
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();  ///< exclusive
  const char* words = "";
};

class Section {
 public:
  /// The section for the whole recipe. `json` is the content of `file` after applying `settings`. All arguments must
  /// outlive the section.
  Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings)
      : Section(json, file, settings, "") {}

  bool has(const std::string& key) const { return json_->contains(key); }
  /// All functions `read` overwrite `target` if the key is present, and leave it unchanged otherwise. They throw
  /// DefinitionError if the value has the wrong type or is outside of the given range.
  void read(const std::string& key, std::string& target);
  void read(const std::string& key, double& target, const Bounds& bounds = {});
  void read(const std::string& key, std::int64_t& target, Range range = {});
  void read(const std::string& key, std::uint64_t& target);  ///< 0 to 2^63 - 1.
  void read(const std::string& key, bool& target);
  void read(const std::string& key, std::vector<std::string>& target);
  /// Reads one of `names`. `target` becomes the index of the name.
  template <class Enumeration>
  void read(const std::string& key, Enumeration& target, const std::vector<std::string>& names) {
    target = static_cast<Enumeration>(chosen(key, static_cast<std::size_t>(target), names));
  }
  /// Reads one of `names`. `target` becomes the name.
  void read(const std::string& key, std::string& target, const std::vector<std::string>& names);
  /// Reads a value that is an integer or `word`. An integer becomes the value of `target`. Returns whether the value is
  /// `word`.
  bool read_or(const std::string& key, std::int64_t& target, const std::string& word, Range range = {});
  /// Returns the object under the key, or an empty object if the key is missing.
  Section section(const std::string& key);
  /// Returns the objects in the list under the key, or the object there, or an empty list if the key is missing.
  std::vector<Section> sections(const std::string& key);
  /// Returns the value under the key, or null if the key is missing.
  const Json& value(const std::string& key);
  /// Fails if a key is missing.
  void need(const std::vector<std::string>& keys) const;
  /// Fails if both keys are present.
  void exclude(const std::string& key, const std::string& other) const;
  /// Fails at the first key that was not read, and suggests the nearest known key.
  void done() const;
  /// Throws DefinitionError about the value under `key` ("" for the object itself).
  [[noreturn]] void fail(const std::string& key, const std::string& message) const { fail(key, message, false); }
  const Json& json() const { return *json_; }

 private:
  Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings, std::string key);
  [[noreturn]] void fail(const std::string& key, const std::string& message, bool about_key) const;
  const Json* find(const std::string& key);
  template <class Target>
  bool take(const std::string& key, Target& target, bool (Json::*is)() const noexcept, const char* wanted);
  std::size_t chosen(const std::string& key, std::size_t otherwise, const std::vector<std::string>& names);

  const Json* json_;
  const JsonNode* file_;  // the root of the file
  const std::vector<Setting>* settings_;
  std::string key_;  // separated by dots: "data", "optimizer.groups.0"
  std::vector<std::string> asked_;
};

}  // namespace xtape::train
