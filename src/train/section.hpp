/// An object of a recipe, read key by key: what is not read is a mistake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json_source.hpp"

namespace xtape::train {

class Section {
 public:
  /// `lines` gives the places of errors; values that --set brought in have none.
  Section(const model::Json& json, const model::JsonSource& source, std::string key = "");

  bool has(const std::string& key) const { return json_->contains(key); }
  /// Overwrites `target` where the key is there. Each throws DefinitionError where the value is of another kind.
  void read(const std::string& key, std::string& target);
  void read(const std::string& key, double& target);
  void read(const std::string& key, std::int64_t& target);  ///< Whole numbers of at least 0.
  void read(const std::string& key, std::uint64_t& target);
  void read(const std::string& key, bool& target);
  /// The object under the key; an empty one where there is none.
  Section section(const std::string& key);
  /// The value under the key, whatever it is; null where there is none.
  const model::Json& value(const std::string& key);
  /// Fails unless the key is there.
  void need(const std::string& key);
  /// Fails at the first key that nobody has asked for, naming the nearest of those that were.
  void done() const;
  /// Throws DefinitionError about the value under `key` ("" for the object itself).
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;
  const model::Json& json() const { return *json_; }

 private:
  const model::Json* find(const std::string& key);
  const model::Json* json_;
  const model::JsonSource* source_;
  std::string key_;  // dotted: "data"
  std::vector<std::string> asked_;
};

}  // namespace xtape::train
