/// Reads an object of a recipe key by key, and reports keys that were not read as mistakes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json_text.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The range of an integer of a recipe, both ends included. The default `high` is above every sensible count, and small
/// enough that sums stay far from 2^63.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 1000000000000;
};

class Section {
 public:
  /// The whole recipe: `json` is the content of `file` with `settings` applied. All must outlive the section.
  Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings)
      : Section(json, file, settings, "") {}

  bool has(const std::string& key) const { return json_->contains(key); }
  /// Overwrite `target` if the key is present. All throw DefinitionError if the value has another type.
  void read(const std::string& key, std::string& target);
  void read(const std::string& key, double& target);
  void read(const std::string& key, std::int64_t& target, Range range = {});
  void read(const std::string& key, std::uint64_t& target);  ///< 0 to 2^63 - 1.
  void read(const std::string& key, bool& target);
  void read(const std::string& key, std::vector<std::string>& target);
  /// The object under the key; an empty one if the key is missing.
  Section section(const std::string& key);
  /// `value`, the value under the key, as an integer. `or_else` names the alternatives in messages: "or \"all\"".
  std::int64_t integer(const std::string& key, const Json& value, Range range, const std::string& or_else = "") const;
  /// The value under the key; null if the key is missing.
  const Json& value(const std::string& key);
  /// Fails if the key is missing.
  void need(const std::string& key);
  /// Fails at the first key that was not read, and suggests the nearest known key.
  void done() const;
  /// Throws DefinitionError about the value under `key` ("" for the object itself).
  [[noreturn]] void fail(const std::string& key, const std::string& message) const { fail(key, message, false); }
  const Json& json() const { return *json_; }

 private:
  Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings, std::string key);
  [[noreturn]] void fail(const std::string& key, const std::string& message, bool about_key) const;
  const Json* find(const std::string& key);

  const Json* json_;
  const JsonNode* file_;  // the root of the file
  const std::vector<Setting>* settings_;
  std::string key_;  // dotted: "data"
  std::vector<std::string> asked_;
};

}  // namespace xtape::train
