#include "data/tables/json_lines.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"
#include "data/texts/texts.hpp"

namespace xtape {

void for_each_object(const std::string& path, const ReadOptions& options,
                     const std::function<void(const JsonNode&, std::size_t)>& take) {
  std::size_t number = 0;
  for (std::string& line : read_lines(path, options)) {
    ++number;
    if (is_blank(line)) continue;
    const JsonNode row(std::make_shared<const JsonText>(std::move(line), path, JsonErrors::file, JsonNumbers::any,
                                                        static_cast<int>(number)));
    if (!row.is_object()) row.fail("a line of JSON Lines must be an object with fields, {\"…\": …}");
    take(row, number);
  }
}

JsonNode at_path(const JsonNode& row, const std::string& path) {
  if (row.is_object() && row.has(path)) return row.at(path);
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    if (row.is_object() && row.has(path.substr(0, dot)))
      return at_path(row.at(path.substr(0, dot)), path.substr(dot + 1));
  if (!row.is_object()) row.fail("an object with the field '" + path + "' belongs here");
  std::vector<std::string> keys;
  for (const auto& entry : row.entries()) keys.push_back(entry.first);
  row.fail("there is no field '" + path + "'" + did_you_mean(path, keys) +
           (keys.empty() ? "" : " (fields: " + joined_first(keys, 20) + ")"));
}

namespace {
std::string text_of_value(const JsonNode& node) {
  const Json& value = node.json();
  if (value.is_string()) return node.text();
  if (value.is_number() || value.is_boolean()) return node.source()->spelling(value);
  node.fail(value.is_null() ? "the value is missing (null)" : "a string, a number, true or false belongs here");
}

std::string words_of(const JsonNode& node) {
  std::string words;
  for (const JsonNode& each : node.elements()) {
    const std::string word = text_of_value(each);
    try {
      check_word(word);
    } catch (const Error& error) {
      each.fail(error.what());
    }
    words += (words.empty() ? "" : " ") + word;
  }
  return words;
}
}  // namespace

RowTexts read_json_lines(const std::string& path, const std::vector<JsonField>& fields, const ReadOptions& options) {
  RowTexts made;
  std::size_t columns = 0;
  for (const JsonField& field : fields) columns += std::max<std::size_t>(1, field.width);
  made.columns.resize(columns);
  for_each_object(path, options, [&](const JsonNode& row, std::size_t line) {
    auto column = made.columns.begin();
    for (const JsonField& field : fields) {
      const JsonNode value = at_path(row, field.path);
      if (field.width == 0) {
        (column++)->push_back(field.words ? words_of(value) : text_of_value(value));
        continue;
      }
      const std::vector<JsonNode> values = value.elements();
      if (values.size() != field.width)
        value.fail("a list of " + std::to_string(field.width) + " values belongs here, not of " +
                   std::to_string(values.size()));
      for (const JsonNode& each : values) (column++)->push_back(text_of_value(each));
    }
    made.lines.push_back(line);
  });
  return made;
}

}  // namespace xtape
