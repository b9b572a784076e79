#include <nlohmann/json.hpp>

#include "data/tokenizers/published.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

bool is_unset(const JsonNode& object, const char* key) {
  if (!object.has(key)) return true;
  const Json& value = object.at(key).json();
  return value.is_null() || value == false || value == "";
}

bool flag_of(const JsonNode& object, const char* key, bool missing) {
  return object.has(key) && !object.at(key).is_null() ? object.at(key).flag() : missing;
}

std::string text_of(const JsonNode& object, const char* key, const std::string& missing) {
  return object.has(key) && !object.at(key).is_null() ? object.at(key).text() : missing;
}

std::vector<JsonNode> parts_of(const JsonNode& node, const char* list) {
  if (node.at("type").text() != "Sequence") return {node};
  std::vector<JsonNode> parts;
  for (const JsonNode& each : node.at(list).elements())
    for (JsonNode& part : parts_of(each, list)) parts.push_back(std::move(part));
  return parts;
}

std::string space_of(const JsonNode& node) {
  const std::string space = text_of(node, "replacement", "\u2581");
  if (space.empty()) node.at("replacement").fail("\"replacement\" must not be empty");
  return space;
}

std::string prepend_scheme(const JsonNode& node) {
  // Older files have add_prefix_space instead.
  return text_of(node, "prepend_scheme", flag_of(node, "add_prefix_space", true) ? "always" : "never");
}

std::int32_t read_token(const JsonNode& node) {
  return static_cast<std::int32_t>(node.integer(0, most_pieces - 1));
}

WordPattern read_pattern(const JsonNode& node) {
  const bool regex = node.has("Regex");
  const JsonNode text = node.at(regex ? "Regex" : "String");
  if (!regex && text.text().empty()) text.fail("the text to be found must not be empty");
  return at_node(text, [&] { return regex ? WordPattern(text.text()) : WordPattern::literal(text.text()); });
}

void refuse_type(const JsonNode& node, const std::string& what, const std::string& supported) {
  node.at("type").fail(what + " \"" + node.at("type").text() + "\" is not supported; supported: " + supported);
}

}  // namespace xtape
