/// JSON as all of the project reads it: one parser, which says of every mistake where it stands and what would be
/// right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace xtape {

using Json = nlohmann::ordered_json;

/// What a mistake in a JSON text is thrown as.
enum class JsonErrors : std::uint8_t { definition, file };  // DefinitionError, FileError

/// A JSON text, parsed, with the place of each of its values. Keeps entries in the order of the text. A byte-order mark
/// in front is skipped. Nesting is limited, and time and memory are linear in the text.
class JsonText {
 public:
  static constexpr std::size_t deepest = 256;  ///< So many arrays and objects inside each other.

  /// `file` stands for the text in errors. Throws where the text is empty, is not JSON or not UTF-8, holds NUL bytes or
  /// anything behind its value, nests too deeply, or where an object has a key twice or a number is out of range.
  JsonText(std::string text, std::string file, JsonErrors errors);
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  const Json& root() const { return root_; }
  const std::string& file() const { return file_; }

  /// Of `root` or any value inside it: the byte where it begins.
  std::size_t begin_of(const Json& value) const;
  /// The byte where the key of a value begins; where the value has none, `begin_of`.
  std::size_t key_of(const Json& value) const;
  /// How the text writes a number or a word.
  std::string spelling(const Json& value) const;

  int line_at(std::size_t byte) const;                       ///< Counted from 1.
  std::string caret_at(std::size_t byte) const;              ///< The line, and a caret below it.
  [[noreturn]] void fail(const std::string& message) const;  ///< Throws the message as it stands.
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
  Json root_;
  std::vector<Place> places_;       // by address
  std::vector<std::size_t> lines_;  // where each begins
};

/// A value inside a text. Every accessor throws, with the value's place and a caret, where the value is of another
/// kind.
class JsonNode {
 public:
  JsonNode() = default;
  explicit JsonNode(std::shared_ptr<const JsonText> source) : source_(std::move(source)), value_(&source_->root()) {}
  /// Reads a text. Throws as JsonText does.
  JsonNode(std::string text, std::string file, JsonErrors errors)
      : JsonNode(std::make_shared<const JsonText>(std::move(text), std::move(file), errors)) {}

  const Json& json() const { return *value_; }
  const std::shared_ptr<const JsonText>& source() const { return source_; }
  const std::string& file() const { return source_->file(); }
  std::size_t begin() const { return source_->begin_of(*value_); }
  /// Throws "file, owner, line 3: message" and the line with a caret under the value, or under its key.
  [[noreturn]] void fail(const std::string& message) const { fail_at(begin(), message); }
  [[noreturn]] void fail_at_key(const std::string& message) const { fail_at(source_->key_of(*value_), message); }
  /// Names what this node and those below it belong to in errors.
  JsonNode owned_by(const std::string& owner) const;
  const std::string& owner() const { return owner_; }

  bool is_null() const { return value_->is_null(); }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_string() const { return value_->is_string(); }
  const std::string& text() const;
  bool flag() const;
  double number() const;
  /// A whole number of this range.
  std::int64_t integer(std::int64_t least, std::int64_t greatest) const;
  bool has(const std::string& key) const { return value_ != nullptr && value_->is_object() && value_->contains(key); }
  JsonNode at(const std::string& key) const;  ///< Fails where the key is missing.
  /// The entries of an object, in the order of the text.
  std::vector<std::pair<std::string, JsonNode>> entries() const;
  /// The elements of an array.
  std::vector<JsonNode> elements() const;
  /// Fails at the first key that is not one of `known`, naming the nearest.
  void only(const std::vector<std::string>& known) const;

 private:
  [[noreturn]] void fail_at(std::size_t byte, const std::string& message) const;
  [[noreturn]] void refuse(const char* wanted) const;
  JsonNode child(const Json& value) const;

  std::shared_ptr<const JsonText> source_;
  const Json* value_ = nullptr;
  std::string owner_;
};

}  // namespace xtape
