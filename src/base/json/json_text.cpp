#include "base/json/json_text.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape {

const JsonText::Place& JsonText::place_of(const Json& value) const {
  return *std::lower_bound(places_.begin(), places_.end(), &value,
                           [](const Place& place, const Json* sought) { return std::less<>()(place.value, sought); });
}

std::size_t JsonText::begin_of(const Json& value) const {
  return place_of(value).begin;
}

std::size_t JsonText::key_of(const Json& value) const {
  return place_of(value).key;
}

std::string JsonText::spelling(const Json& value) const {
  const std::size_t begin = begin_of(value);
  return text_.substr(begin, text_.find_first_of(",]}: \t\r\n", begin) - begin);
}

int JsonText::line_at(std::size_t byte) const {
  return first_line_ - 1 + static_cast<int>(std::upper_bound(lines_.begin(), lines_.end(), byte) - lines_.begin());
}

std::size_t JsonText::column_at(std::size_t byte) const {
  const auto after = std::upper_bound(lines_.begin(), lines_.end(), byte);
  return after == lines_.begin() ? 0 : byte - *(after - 1);
}

std::string JsonText::caret_at(std::size_t byte) const {
  const std::size_t column = column_at(byte), begin = byte - column;
  const std::size_t end = std::min(text_.find('\n', byte), text_.size());
  return with_caret(std::string_view(text_).substr(begin, end - begin), column);
}

void JsonText::fail(const std::string& message) const {
  if (errors_ == JsonErrors::definition) throw DefinitionError(message);
  throw FileError(message);
}

void JsonText::fail_at(std::size_t byte, const std::string& message) const {
  const std::size_t begin = byte - column_at(byte);
  const std::string before = printable(std::string_view(text_).substr(begin, byte - begin));
  const auto characters =
      std::ranges::count_if(before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
  fail(file_ + ", line " + std::to_string(line_at(byte)) + ", column " + std::to_string(characters + 1) + ": " +
       message + "\n" + caret_at(byte));
}

namespace {
constexpr const char* mark = "\x01";  // begins the texts that stand for numbers; JSON writes it as \u0001

void hide_infinities(Json& value) {
  if (value.is_structured())
    for (Json& each : value) hide_infinities(each);
  if (!value.is_number_float() || std::isfinite(value.get<double>())) return;
  const double number = value.get<double>();
  value = std::string(mark) + (std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
}
}  // namespace

std::string indented(const Json& value) {
  Json hidden = value;
  hide_infinities(hidden);
  std::string text;
  try {
    text = hidden.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw Error("JSON text must be UTF-8, but a text in it is not: " +
                hidden.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  constexpr std::string_view begin = "\"\\u0001";
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    text.erase(text.find('"', at + 1), 1);
    text.erase(at, begin.size());
  }
  return text;
}

void JsonNode::fail_at(std::size_t byte, const std::string& message) const {
  source_->fail(file() + (owner_.empty() ? "" : ", " + owner_) + ", line " + std::to_string(source_->line_at(byte)) +
                ": " + message + "\n" + source_->caret_at(byte));
}

void JsonNode::refuse(const char* wanted) const {
  const std::string kind = value_->type_name();
  fail(std::string(wanted) + " belongs here, not " +
       (kind == "null" ? kind : (kind == "object" || kind == "array" ? "an " : "a ") + kind));
}

/// Contents that are not in the text as a whole. `parts` are their entries, which are values of the text.
struct JsonNode::Made {
  Json json;
  std::vector<std::pair<std::string, JsonNode>> parts = {};
};

JsonNode JsonNode::with(std::shared_ptr<const Made> made) const {
  JsonNode node = *this;
  node.value_ = &made->json;
  node.made_ = std::move(made);
  return node;
}

JsonNode JsonNode::with_entries(const std::vector<std::pair<std::string, JsonNode>>& entries) const {
  Json::object_t object;  // filled by push_back: looking up each name would be a linear search
  for (const auto& [name, node] : entries) object.push_back({name, node.json()});
  return with(std::make_shared<const Made>(Made{std::move(object), entries}));
}

JsonNode JsonNode::with_elements(const std::vector<JsonNode>& elements) const {
  Made made{Json::array()};
  for (const JsonNode& node : elements) {
    made.json.push_back(node.json());
    made.parts.emplace_back("", node);
  }
  return with(std::make_shared<const Made>(std::move(made)));
}

JsonNode JsonNode::with_text(const std::string& text) const {
  return with(std::make_shared<const Made>(Made{text}));
}

JsonNode JsonNode::owned_by(const std::string& owner) const {
  JsonNode node = *this;
  node.owner_ = owner;
  return node;
}

bool JsonNode::is_null() const {
  return value_->is_null();
}

bool JsonNode::is_object() const {
  return value_->is_object();
}

bool JsonNode::is_array() const {
  return value_->is_array();
}

bool JsonNode::is_string() const {
  return value_->is_string();
}

bool JsonNode::has(const std::string& key) const {
  return value_ != nullptr && value_->is_object() && value_->contains(key);
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

double JsonNode::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t greatest) const {
  const bool fits = !value_->is_number_unsigned() || value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  if (!value_->is_number_integer() || !fits || value_->get<std::int64_t>() < least ||
      value_->get<std::int64_t>() > greatest)
    fail("an integer from " + std::to_string(least) + " to " + std::to_string(greatest) + " belongs here");
  return value_->get<std::int64_t>();
}

JsonNode JsonNode::at(const std::string& key) const {
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) {
    std::vector<std::string> keys;
    for (const auto& each : value_->items()) keys.push_back(each.key());
    const std::string other = nearest(key, keys);
    fail("the key \"" + key + "\" is missing" + (other.empty() ? "" : "; is '" + other + "' misspelt?"));
  }
  if (!made_) return child(*found);
  const auto part = std::ranges::find_if(made_->parts, [&](const auto& each) { return each.first == key; });
  return part->second.owned_by(owner_);
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::entries() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonNode>> entries;
  entries.reserve(value_->size());
  if (made_)
    for (const auto& [key, part] : made_->parts) entries.emplace_back(key, part.owned_by(owner_));
  else
    for (const auto& [key, value] : value_->items()) entries.emplace_back(key, child(value));
  return entries;
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!value_->is_array()) refuse("an array");
  std::vector<JsonNode> elements;
  elements.reserve(value_->size());
  if (made_)
    for (const auto& part : made_->parts) elements.push_back(part.second.owned_by(owner_));
  else
    for (const Json& value : *value_) elements.push_back(child(value));
  return elements;
}

void JsonNode::only(const std::vector<std::string>& known) const {
  for (const auto& [key, node] : entries())
    if (!contains(known, key)) node.fail_at_key("the key \"" + key + "\" is not known here" + did_you_mean(key, known));
}

JsonNode JsonNode::child(const Json& value) const {
  JsonNode node = *this;
  node.value_ = node.place_ = &value;
  return node;
}

}  // namespace xtape
