// Changes lines of a list "do".
#include <algorithm>

#include "base/messages/wording.hpp"
#include "model/definition/definition_blocks.hpp"

namespace xtape::model {

namespace {
using Texts = std::vector<std::string>;

/// A line of a list "do", with the names that it assigns.
struct NamedLine {
  Texts names;
  JsonNode node;
};

NamedLine named_line(const JsonNode& node) {
  NamedLine line{{}, node};
  for (const Target& target : parse_line(node.text(), location_of(node), true).targets)
    line.names.push_back(target.name);
  return line;
}

/// Returns whether a line or result uses one of `names`.
bool uses(const JsonNode& node, const Texts& names) {
  if (node.is_object()) {
    const auto entries = node.entries();
    return std::ranges::any_of(entries, [&](const auto& each) { return uses(each.second, names); });
  }
  bool found = false;
  each_name(parse_line(node.text(), location_of(node), true).value,
            [&](const Expression& each) { found = found || contains(names, each.text); });
  return found;
}
}  // namespace

JsonNode changed_lines(const std::vector<JsonNode>& list, const JsonNode& change, const std::vector<JsonNode>& last) {
  std::vector<NamedLine> lines;
  for (const JsonNode& each : list) lines.push_back(named_line(each));
  std::vector<NamedLine> fresh;
  for (const auto& [names, value] : change.entries()) {
    const NamedLine line = named_line(value.with_text(names + " = " + value.text()));
    const auto same = [&](const NamedLine& each) { return each.names == line.names; };
    const auto is_own = [&](const std::string& name) { return contains(line.names, name); };
    const auto count = std::ranges::count_if(lines, same);
    if (count > 1) value.fail_at_key("several lines assign '" + names + "': write the list \"do\" anew");
    for (const NamedLine& each : lines)
      if (count == 0 && std::ranges::any_of(each.names, is_own))
        value.fail_at_key("a line assigns '" + joined(each.names, {}, ",") + "' together: change it by this name");
    if (count == 1)
      std::ranges::find_if(lines, same)->node = line.node;
    else
      fresh.push_back(line);
  }
  // Inserts the last new line first. A new line can then be placed before another new line that uses it.
  for (auto line = fresh.rbegin(); line != fresh.rend(); ++line) {
    const auto place = std::ranges::find_if(lines, [&](const NamedLine& each) { return uses(each.node, line->names); });
    if (place == lines.end() &&
        std::ranges::none_of(last, [&](const JsonNode& each) { return uses(each, line->names); })) {
      Texts known;
      for (const NamedLine& each : lines) known.push_back(joined(each.names, {}, ","));
      const std::string name = joined(line->names, {}, ",");
      line->node.fail_at_key("no line assigns '" + name + "', and none uses it, so that a new line has no place" +
                             did_you_mean(name, known));
    }
    lines.insert(place, *line);
  }
  std::vector<JsonNode> nodes;
  for (const NamedLine& each : lines) nodes.push_back(each.node);
  return change.with_elements(nodes);
}

}  // namespace xtape::model
