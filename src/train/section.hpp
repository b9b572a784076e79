/// An object of a recipe, read key by key: what is not read is a mistake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json_text.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Whole numbers of a recipe, both ends included. No count that makes sense is above `high`, and their products and
/// sums stay far from 2^63.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 1000000000000;
};

class Section {
 public:
  /// The whole recipe: `json` is what `file` says, with `settings` above it. All must outlive the section.
  Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings)
      : Section(json, file, settings, "") {}

  bool has(const std::string& key) const { return json_->contains(key); }
  /// Overwrites `target` where the key is there. Each throws DefinitionError where the value is of another kind.
  void read(const std::string& key, std::string& target);
  void read(const std::string& key, double& target);
  void read(const std::string& key, std::int64_t& target, Range range = {});
  void read(const std::string& key, std::uint64_t& target);  ///< 0 to 2^63 - 1.
  void read(const std::string& key, bool& target);
  void read(const std::string& key, std::vector<std::string>& target);
  /// The object under the key; an empty one where there is none.
  Section section(const std::string& key);
  /// `value`, which stands under the key, as a whole number; `or_else` ("or \"all\"") says what else could stand there.
  std::int64_t integer(const std::string& key, const Json& value, Range range, const std::string& or_else = "") const;
  /// The value under the key, whatever it is; null where there is none.
  const Json& value(const std::string& key);
  /// Fails unless the key is there.
  void need(const std::string& key);
  /// Fails at the first key that nobody has asked for, naming the nearest of those that were.
  void done() const;
  /// Throws DefinitionError about the value under `key` ("" for the object itself).
  [[noreturn]] void fail(const std::string& key, const std::string& message) const { fail(key, message, false); }
  const Json& json() const { return *json_; }

 private:
  Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings, std::string key);
  [[noreturn]] void fail(const std::string& key, const std::string& message, bool about_key) const;
  const Json* find(const std::string& key);

  const Json* json_;
  const JsonNode* file_;  // the whole of it
  const std::vector<Setting>* settings_;
  std::string key_;  // dotted: "data"
  std::vector<std::string> asked_;
};

}  // namespace xtape::train
