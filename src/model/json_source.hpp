/// A JSON file that knows on which line each of its values stands.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "place.hpp"

namespace xtape::model {

using Json = nlohmann::ordered_json;

/// A JSON text, parsed, with the line of every value by its JSON pointer.
struct JsonSource {
  std::string file;  ///< As errors name it.
  Json root;
  std::unordered_map<std::string, int> lines;
};

/// Throws DefinitionError where the text is not JSON or an object has a key twice.
std::shared_ptr<const JsonSource> parse_json(const std::string& text, const std::string& file);

/// Throws FileError where the file cannot be read.
std::string read_text(const std::string& path);

/// A value inside a source. Every accessor throws DefinitionError, with the line, where the value is of another kind.
class JsonNode {
 public:
  JsonNode() = default;
  explicit JsonNode(std::shared_ptr<const JsonSource> source) : source_(std::move(source)), value_(&source_->root) {}

  const Json& json() const { return *value_; }
  const std::string& file() const { return source_->file; }
  const std::string& pointer() const { return pointer_; }
  Place place(const std::string& owner = "") const;
  [[noreturn]] void fail(const std::string& message) const;
  /// Names the part of the definition that this node and those below it belong to in errors.
  JsonNode owned_by(const std::string& owner) const;
  const std::string& owner() const { return owner_; }

  bool is_null() const { return value_->is_null(); }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_string() const { return value_->is_string(); }
  const std::string& text() const;
  bool flag() const;
  bool has(const std::string& key) const { return value_ != nullptr && value_->is_object() && value_->contains(key); }
  JsonNode at(const std::string& key) const;  ///< Fails where the key is missing.
  /// The entries of an object, in the order of the file.
  std::vector<std::pair<std::string, JsonNode>> entries() const;
  /// The elements of an array.
  std::vector<JsonNode> elements() const;
  /// Fails at the first key that is not one of `known`, naming the nearest.
  void only(const std::vector<std::string>& known) const;

 private:
  JsonNode child(const Json& value, const std::string& token) const;

  std::shared_ptr<const JsonSource> source_;
  const Json* value_ = nullptr;
  std::string pointer_;
  std::string owner_;
};

}  // namespace xtape::model
