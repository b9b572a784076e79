#include "train/recipe/section.hpp"

#include <algorithm>
#include <charconv>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

namespace {
const Json null_value;
const Json empty_object = Json::object();
}  // namespace

namespace {
/// Goes to the value under a key of an object, or to an element of a list. Returns false if there is none.
bool descend(JsonNode& node, const std::string& step) {
  if (node.is_object() && node.has(step)) {
    node = node.at(step);
    return true;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (!node.is_array() || error != std::errc() || end != step.data() + step.size()) return false;
  const std::vector<JsonNode> elements = node.elements();
  if (index >= elements.size()) return false;
  node = elements[index];
  return true;
}
}  // namespace

Section::Section(const Json& json, const JsonNode& file, const std::vector<Setting>& settings, std::string key)
    : json_(&json), file_(&file), settings_(&settings), key_(std::move(key)) {
  if (!json.is_object()) fail("", "must be an object");
}

void Section::fail(const std::string& key, const std::string& message, bool about_key) const {
  const std::string dotted = key_ + (key_.empty() || key.empty() ? "" : ".") + key;
  const std::string text = (dotted.empty() ? "the recipe" : "'" + dotted + "'") + " " + message;
  for (const Setting& each : *settings_)
    if (dotted == each.key || dotted.starts_with(each.key + "."))
      throw DefinitionError(file_->file() + ", --set " + each.key + ": " + text);
  JsonNode node = *file_;  // the deepest node of the path that exists in the file
  const std::string path = key_ + (key_.empty() ? "" : ".");
  bool whole = true;
  for (std::size_t at = 0, dot; whole && (dot = path.find('.', at)) != std::string::npos; at = dot + 1)
    whole = descend(node, path.substr(at, dot - at));
  const bool in_file = whole && descend(node, key);
  for (const Setting& each : *settings_)
    if (!in_file && each.key.starts_with(dotted + "."))
      throw DefinitionError(file_->file() + ", --set " + each.key + ": " + text);
  about_key ? node.fail_at_key(text) : node.fail(text);
}

const Json* Section::find(const std::string& key) {
  if (!contains(asked_, key)) asked_.push_back(key);
  const auto found = json_->find(key);
  return found == json_->end() ? nullptr : &*found;
}

template <class Target>
bool Section::take(const std::string& key, Target& target, bool (Json::*is)() const noexcept, const char* wanted) {
  const Json* value = find(key);
  if (value == nullptr) return false;
  if (!(value->*is)()) fail(key, std::string("must be ") + wanted + ", not " + value->dump());
  target = value->get<Target>();
  return true;
}

void Section::read(const std::string& key, std::string& target) {
  take(key, target, &Json::is_string, "a string");
}

void Section::read(const std::string& key, bool& target) {
  take(key, target, &Json::is_boolean, "true or false");
}

void Section::read(const std::string& key, double& target, const Bounds& bounds) {
  if (take(key, target, &Json::is_number, "a number") && !(target >= bounds.low && target < bounds.high))
    fail(key, std::string("must be ") + bounds.words);
}

void Section::read(const std::string& key, std::int64_t& target, Range range) {
  read_or(key, target, "", range);
}

bool Section::read_or(const std::string& key, std::int64_t& target, const std::string& word, Range range) {
  const Json* value = find(key);
  if (value == nullptr) return false;
  if (!word.empty() && *value == word) return true;
  // nlohmann's parser stores an integer above INT64_MAX as unsigned.
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX});
  const std::int64_t number = fits ? value->get<std::int64_t>() : 0;
  if (!fits || number < range.low || number > range.high)
    fail(key, "must be a whole number from " + std::to_string(range.low) + " to " + std::to_string(range.high) +
                  (word.empty() ? "" : " or \"" + word + "\"") + ", not " + value->dump());
  target = number;
  return false;
}

void Section::read(const std::string& key, std::uint64_t& target) {
  auto number = static_cast<std::int64_t>(target);
  read(key, number, {0, INT64_MAX});
  target = static_cast<std::uint64_t>(number);
}

void Section::read(const std::string& key, std::vector<std::string>& target) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (value->is_string()) {
    target = {value->get<std::string>()};
    return;
  }
  const auto text = [](const Json& each) { return each.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), text))
    fail(key, "must be a list of strings, or one string, not " + value->dump());
  target = value->get<std::vector<std::string>>();
}

std::size_t Section::chosen(const std::string& key, std::size_t otherwise, const std::vector<std::string>& names) {
  std::string name = otherwise < names.size() ? names[otherwise] : "";
  read(key, name);
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "\"" : i + 1 == names.size() ? " or \"" : ", \"") + names[i] + "\"";
  fail(key, "must be " + list + ", not \"" + name + "\"" + did_you_mean(name, names));
}

void Section::read(const std::string& key, std::string& target, const std::vector<std::string>& names) {
  target = names[chosen(key, static_cast<std::size_t>(std::ranges::find(names, target) - names.begin()), names)];
}

Section Section::section(const std::string& key) {
  const Json* value = find(key);
  return Section(value == nullptr ? empty_object : *value, *file_, *settings_, key_.empty() ? key : key_ + "." + key);
}

std::vector<Section> Section::sections(const std::string& key) {
  const Json* value = find(key);
  std::vector<Section> sections;
  if (value == nullptr) return sections;
  if (value->is_object()) return {section(key)};
  if (!value->is_array()) fail(key, "must be a list of objects, or one object, not " + value->dump());
  for (const Json& each : *value)
    sections.push_back(Section(each, *file_, *settings_,
                               (key_.empty() ? "" : key_ + ".") + key + "." + std::to_string(sections.size())));
  return sections;
}

const Json& Section::value(const std::string& key) {
  const Json* value = find(key);
  return value == nullptr ? null_value : *value;
}

void Section::need(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys)
    if (!has(key)) fail("", "needs the key '" + key + "'");
}

void Section::exclude(const std::string& key, const std::string& other) const {
  if (has(key) && has(other)) fail(key, "and '" + other + "' exclude each other: give one of them");
}

void Section::done() const {
  for (const auto& [key, value] : json_->items()) {
    if (contains(asked_, key)) continue;
    const std::string known = did_you_mean(key, asked_);
    fail(key, known.empty() ? "is not a known key; known: " + joined(asked_) : "is not a known key" + known, true);
  }
}

}  // namespace xtape::train
