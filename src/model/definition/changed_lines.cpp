// Changes lines of a list "do".
#include <algorithm>

#include "base/messages/wording.hpp"
#include "model/definition/definition_blocks.hpp"

namespace xtape::model {

namespace {
/// A line of a list "do", with the names that it assigns, such as "k, v".
struct NamedLine {
  std::string name;
  JsonNode node;
};

std::string without_spaces(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

NamedLine named_line(const JsonNode& node) {
  std::string name;
  for (const Target& target : parse_line(node.text(), location_of(node), true).targets)
    name += (name.empty() ? "" : ",") + target.name;
  return {name, node};
}

/// Returns whether a line or result uses one of `names`, a list such as "k,v".
bool uses(const JsonNode& node, const std::string& names) {
  if (node.is_object()) {
    const auto entries = node.entries();
    return std::ranges::any_of(entries, [&](const auto& each) { return uses(each.second, names); });
  }
  bool found = false;
  each_expression(parse_line(node.text(), location_of(node), true).value, [&](const Expression& each) {
    found = found || (each.form == Form::name && ("," + names + ",").find("," + each.text + ",") != std::string::npos);
  });
  return found;
}

/// Returns whether two lists of names, such as "k,v", have a name in common.
bool overlap(const std::string& a, const std::string& b) {
  for (std::size_t first = 0; first < b.size();) {
    const std::size_t comma = std::min(b.find(',', first), b.size());
    if (("," + a + ",").find("," + b.substr(first, comma - first) + ",") != std::string::npos) return true;
    first = comma + 1;
  }
  return false;
}
}  // namespace

JsonNode changed_lines(const std::vector<JsonNode>& list, const JsonNode& change, const std::vector<JsonNode>& last) {
  std::vector<NamedLine> lines;
  for (const JsonNode& each : list) lines.push_back(named_line(each));
  std::vector<NamedLine> fresh;
  for (const auto& [names, value] : change.entries()) {
    const std::string name = without_spaces(names);
    const auto same = [&name = name](const NamedLine& each) { return each.name == name; };
    const JsonNode line = value.with_text(names + " = " + value.text());
    const auto count = std::ranges::count_if(lines, same);
    if (count > 1) value.fail_at_key("several lines assign '" + names + "': write the list \"do\" anew");
    for (const NamedLine& each : lines)
      if (count == 0 && overlap(each.name, name))
        value.fail_at_key("a line assigns '" + each.name + "' together: change it by this name");
    if (count == 1)
      std::ranges::find_if(lines, same)->node = line;
    else
      fresh.push_back({name, line});
  }
  // Inserts the last new line first. A new line can then be placed before another new line that uses it.
  for (auto line = fresh.rbegin(); line != fresh.rend(); ++line) {
    const auto place = std::ranges::find_if(lines, [&](const NamedLine& each) { return uses(each.node, line->name); });
    if (place == lines.end() &&
        std::ranges::none_of(last, [&](const JsonNode& each) { return uses(each, line->name); })) {
      std::vector<std::string> known;
      for (const NamedLine& each : lines) known.push_back(each.name);
      line->node.fail_at_key("no line assigns '" + line->name + "', and none uses it, so that a new line has no place" +
                             did_you_mean(line->name, known));
    }
    lines.insert(place, *line);
  }
  std::vector<JsonNode> nodes;
  for (const NamedLine& each : lines) nodes.push_back(each.node);
  return change.with_elements(nodes);
}

}  // namespace xtape::model
