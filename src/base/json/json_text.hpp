/// The one JSON parser of the project. Every error gives its location and a valid alternative. Sources that inspect
/// values include <nlohmann/json.hpp>, which adds seconds to the compile time of each source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace xtape {

using Json = nlohmann::ordered_json;

/// The exception type for errors in a JSON text: DefinitionError or FileError.
enum class JsonErrors : std::uint8_t { definition, file };

/// The numbers that a JSON text may contain. `any` also accepts Infinity, -Infinity and NaN, which Python's json
/// writes.
enum class JsonNumbers : std::uint8_t { finite, any };

/// A parsed JSON text with the location of each value. Object entries keep the order of the text. A leading byte-order
/// mark is skipped. Nesting is limited; time and memory are linear in the length of the text.
class JsonText {
 public:
  static constexpr std::size_t deepest = 256;  ///< The maximum nesting depth of arrays and objects.

  /// `file` names the text in errors. Throws if the text is empty, is not JSON or UTF-8, contains NUL bytes, has
  /// content after its value, is nested more than `deepest` levels deep, or has 4 GiB or more. Throws if an object has
  /// a key twice or a number is out of range. `first_line` is the number of the text's first line in the file.
  JsonText(std::string text, std::string file, JsonErrors errors, JsonNumbers numbers = JsonNumbers::finite,
           int first_line = 1);
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  const Json& root() const { return *root_; }
  const std::string& file() const { return file_; }

  /// Returns the byte of the text at which `value` begins. `value` must be `root` or a value inside it, not a copy.
  std::size_t begin_of(const Json& value) const;
  /// Returns the byte at which the key of `value` begins, or `begin_of(value)` if it has no key.
  std::size_t key_of(const Json& value) const;
  /// Returns the spelling of a number, `true`, `false` or `null` in the text.
  std::string spelling(const Json& value) const;

  int line_at(std::size_t byte) const;                       ///< Counted from 1, or from `first_line`.
  std::string caret_at(std::size_t byte) const;              ///< The line that contains `byte`, and a caret below it.
  [[noreturn]] void fail(const std::string& message) const;  ///< Throws `message` without a location.
  /// Throws "file, line 3, column 7: message" and the line with a caret.
  [[noreturn]] void fail_at(std::size_t byte, const std::string& message) const;

 private:
  friend class JsonReader;
  struct Place {
    const Json* value;
    std::uint32_t begin, key;
  };
  const Place& place_of(const Json& value) const;
  std::size_t column_at(std::size_t byte) const;

  std::string text_, file_;
  JsonErrors errors_;
  int first_line_;
  std::unique_ptr<Json> root_;
  std::vector<Place> places_;       // sorted by the value's address
  std::vector<std::size_t> lines_;  // the byte at which each line begins
};

/// Returns the text of a value, indented and with a line feed at its end. Numbers that are not finite are spelt as in
/// JsonNumbers::any. Throws Error if a text in the value is not UTF-8.
std::string indented(const Json& value);

/// A value inside a text. The node keeps the text alive. If the value has another type, every accessor throws an error
/// with the value's location and a caret.
class JsonNode {
 public:
  JsonNode() = default;
  explicit JsonNode(std::shared_ptr<const JsonText> source)
      : source_(std::move(source)), value_(&source_->root()), place_(value_) {}
  /// Parses a text. Throws as JsonText does.
  JsonNode(std::string text, std::string file, JsonErrors errors, JsonNumbers numbers = JsonNumbers::finite)
      : JsonNode(std::make_shared<const JsonText>(std::move(text), std::move(file), errors, numbers)) {}

  /// These functions return a node with other contents at the place of this node. Errors about the new node give this
  /// place. Errors about its parts give the places of the parts.
  JsonNode with_entries(const std::vector<std::pair<std::string, JsonNode>>& entries) const;
  JsonNode with_elements(const std::vector<JsonNode>& elements) const;
  JsonNode with_text(const std::string& text) const;

  const Json& json() const { return *value_; }
  /// Returns the value in the text that determines the place of this node.
  const Json* place() const { return place_; }
  const std::shared_ptr<const JsonText>& source() const { return source_; }
  const std::string& file() const { return source_->file(); }
  std::size_t begin() const { return source_->begin_of(*place_); }
  /// Throws "file, owner, line 3: message" and the line with a caret under the value, or under its key.
  [[noreturn]] void fail(const std::string& message) const { fail_at(begin(), message); }
  [[noreturn]] void fail_at_key(const std::string& message) const { fail_at(source_->key_of(*place_), message); }
  /// Returns a copy of this node with an owner. Errors of the copy, and of nodes taken from it, name the owner.
  JsonNode owned_by(const std::string& owner) const;
  const std::string& owner() const { return owner_; }

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  const std::string& text() const;
  bool flag() const;
  double number() const;
  /// Returns the integer. Throws if it is outside of [least, greatest].
  std::int64_t integer(std::int64_t least, std::int64_t greatest) const;
  bool has(const std::string& key) const;
  JsonNode at(const std::string& key) const;  ///< Throws if the key is missing.
  /// Returns the entries of an object, in the order of the text.
  std::vector<std::pair<std::string, JsonNode>> entries() const;
  /// Returns the elements of an array.
  std::vector<JsonNode> elements() const;
  /// Throws at the first key that is not one of `known`. The message suggests the nearest known key.
  void only(const std::vector<std::string>& known) const;

 private:
  [[noreturn]] void fail_at(std::size_t byte, const std::string& message) const;
  [[noreturn]] void refuse(const char* wanted) const;
  JsonNode child(const Json& value) const;
  struct Made;
  JsonNode with(std::shared_ptr<const Made> made) const;

  std::shared_ptr<const JsonText> source_;
  const Json* value_ = nullptr;
  const Json* place_ = nullptr;       // the value in the text; equals `value_` if `made_` is null
  std::shared_ptr<const Made> made_;  // null if the node has the contents of the text
  std::string owner_;
};

}  // namespace xtape
