#include "section.hpp"

#include <algorithm>

#include "nearest.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

namespace {
const Json null_value;
const Json empty_object = Json::object();
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
  JsonNode node = *file_;  // the deepest node of the path that the file has
  for (const std::string& step : {key_, key})
    if (node.has(step)) node = node.at(step);
  about_key ? node.fail_at_key(text) : node.fail(text);
}

const Json* Section::find(const std::string& key) {
  asked_.push_back(key);
  const auto found = json_->find(key);
  return found == json_->end() ? nullptr : &*found;
}

void Section::read(const std::string& key, std::string& target) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) fail(key, "must be a string, not " + value->dump());
  target = value->get<std::string>();
}

void Section::read(const std::string& key, double& target) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number()) fail(key, "must be a number, not " + value->dump());
  target = value->get<double>();
}

void Section::read(const std::string& key, std::int64_t& target, Range range) {
  if (const Json* value = find(key)) target = integer(key, *value, range);
}

std::int64_t Section::integer(const std::string& key, const Json& value, Range range,
                              const std::string& or_else) const {
  // nlohmann's parser stores an integer above INT64_MAX as unsigned.
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
  const std::int64_t number = fits ? value.get<std::int64_t>() : 0;
  if (!fits || number < range.low || number > range.high)
    fail(key, "must be a whole number from " + std::to_string(range.low) + " to " + std::to_string(range.high) +
                  (or_else.empty() ? "" : " " + or_else) + ", not " + value.dump());
  return number;
}

void Section::read(const std::string& key, std::uint64_t& target) {
  auto number = static_cast<std::int64_t>(target);
  read(key, number, {0, INT64_MAX});
  target = static_cast<std::uint64_t>(number);
}

void Section::read(const std::string& key, bool& target) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) fail(key, "must be true or false, not " + value->dump());
  target = value->get<bool>();
}

void Section::read(const std::string& key, std::vector<std::string>& target) {
  const Json* value = find(key);
  if (value == nullptr) return;
  const auto text = [](const Json& each) { return each.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), text))
    fail(key, "must be a list of strings, not " + value->dump());
  target = value->get<std::vector<std::string>>();
}

Section Section::section(const std::string& key) {
  const Json* value = find(key);
  return Section(value == nullptr ? empty_object : *value, *file_, *settings_, key_.empty() ? key : key_ + "." + key);
}

const Json& Section::value(const std::string& key) {
  const Json* value = find(key);
  return value == nullptr ? null_value : *value;
}

void Section::need(const std::string& key) {
  if (!has(key)) fail("", "needs the key '" + key + "'");
}

void Section::done() const {
  for (const auto& [key, value] : json_->items()) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    const std::string known = did_you_mean(key, asked_);
    std::string list;
    for (const std::string& each : asked_) list += (list.empty() ? "" : ", ") + each;
    fail(key, known.empty() ? "is not a known key; known: " + list : "is not a known key" + known, true);
  }
}

}  // namespace xtape::train
