// Merges the entries of a file over the entries of the files that it extends, and changes parts of them.
#include <algorithm>
#include <map>
#include <set>

#include "base/messages/wording.hpp"
#include "model/definition/definition_blocks.hpp"

namespace xtape::model {

namespace {
/// Returns the names of an entry that describes several modules or weights: "query, key, value".
std::vector<std::string> names_in(const std::string& names, const std::string& key) {
  if (key != "weights" && key != "modules") return {names};
  std::vector<std::string> all;
  for (std::size_t first = 0; first <= names.size();) {
    const std::size_t comma = std::min(names.find(',', first), names.size());
    all.push_back(names.substr(first, comma - first));
    first = comma + 1;
    if (first < names.size() && names[first] == ' ') ++first;
  }
  return all;
}

JsonNode* find(Entries& entries, const std::string& name) {
  for (auto& [each, node] : entries)
    if (each == name) return &node;
  return nullptr;
}
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& each : entries) names.push_back(each.first);
  return names;
}

/// Entries by name.
struct Merged {
  Entries entries;
  std::map<std::string, std::size_t> places;

  JsonNode* find(const std::string& name) {
    const auto place = places.find(name);
    return place == places.end() ? nullptr : &entries[place->second].second;
  }
  void set(const std::string& name, const JsonNode& entry) {
    if (JsonNode* before = find(name)) {
      *before = entry;
      return;
    }
    places.emplace(name, entries.size());
    entries.emplace_back(name, entry);
  }
  /// Removes an inherited entry, because the entry `by` is null. `by` stays as the entry of a name that a used file
  /// has.
  void remove(const std::string& name, const JsonNode& by, const Entries& used) {
    std::vector<std::string> removable = names_of(used);
    if (contains(removable, name)) return set(name, by);
    const auto place = places.find(name);
    if (place == places.end()) {
      for (const auto& each : entries) removable.push_back(each.first);
      by.fail_at_key("there is no '" + name + "' to remove" + did_you_mean(name, removable));
    }
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(place->second));
    places.clear();
    for (std::size_t i = 0; i < entries.size(); ++i) places.emplace(entries[i].first, i);
  }
};

/// Returns the entries of a module that remain after `change`. If `change` sets a parameter, the old setting of this
/// parameter is dropped, both under its name and under "pass".
Entries left_by(const JsonNode& change, const Entries& entries) {
  const auto passed = [&](const std::string& name) {
    const std::vector<JsonNode> all = change.has("pass") ? change.at("pass").elements() : std::vector<JsonNode>();
    return std::ranges::any_of(all, [&](const JsonNode& each) { return each.text() == name; });
  };
  Entries left;
  for (const auto& [name, node] : entries) {
    if (passed(name)) continue;
    if (name != "pass") {
      left.emplace_back(name, node);
      continue;
    }
    std::vector<JsonNode> kept = node.elements();
    kept.erase(std::remove_if(kept.begin(), kept.end(), [&](const JsonNode& each) { return change.has(each.text()); }),
               kept.end());
    left.emplace_back(name, node.with_elements(kept));
  }
  return left;
}
}  // namespace

bool is_change(const JsonNode& entry) {
  return entry.has("change") && !entry.has("block");
}

JsonNode changed(const JsonNode& base, const JsonNode& entry, const std::string& name, const std::string& key) {
  entry.only({"change"});
  const bool computes = key == "blocks" || key == "functions";
  const std::string owner = computes ? (key == "blocks" ? "block '" : "function '") + name + "'" : entry.owner();
  const JsonNode before = base.owned_by(owner), change = entry.at("change").owned_by(owner);
  Entries all = computes ? before.entries() : left_by(change, before.entries());
  for (const auto& [part, value] : change.entries()) {
    JsonNode* old = find(all, part);
    if (computes && part == "do" && value.is_object()) continue;
    if (old == nullptr)
      all.emplace_back(part, value);
    else if (computes && value.is_object() && old->is_object())
      *old = value.with_entries(merged({before, change}, part, owner));
    else
      *old = is_change(value) ? changed(*old, value, part, key) : value;
  }
  if (computes && change.has("do") && change.at("do").is_object()) {
    std::vector<JsonNode> last;
    for (const auto& [part, value] : all)
      if (part == "result" || part == "update") last.push_back(value);
    JsonNode* lines = find(all, "do");
    const JsonNode made =
        changed_lines(lines != nullptr ? lines->elements() : std::vector<JsonNode>(), change.at("do"), last);
    if (lines != nullptr)
      *lines = made;
    else
      all.emplace_back("do", made);
  }
  return entry.with_entries(all);
}

Entries merged(const std::vector<JsonNode>& nodes, const std::string& key, const std::string& owner,
               const Entries& inherited) {
  Merged made;
  for (const JsonNode& node : nodes) {
    if (!node.has(key)) continue;
    const JsonNode object = owner.empty() ? node.at(key) : node.at(key).owned_by(owner);
    std::set<std::string> own;
    for (const auto& [names, entry] : object.entries())
      for (const std::string& name : names_in(names, key)) {
        if (!own.insert(name).second) entry.fail_at_key("'" + name + "' is described twice");
        if (key == "functions" && entry.is_null()) {
          made.remove(name, entry, inherited);
        } else if (!is_change(entry)) {
          made.set(name, entry);
        } else {
          const auto known = [&, &name = name](const auto& each) { return each.first == name; };
          const auto used = key == "functions" ? inherited.end() : std::ranges::find_if(inherited, known);
          const JsonNode* const before = made.find(name);
          if (before == nullptr && used == inherited.end()) {
            std::vector<std::string> all = names_of(made.entries);
            if (key != "functions")
              for (const auto& each : inherited) all.push_back(each.first);
            entry.fail_at_key("there is no '" + name + "' to change" + did_you_mean(name, all));
          }
          made.set(name, changed(before != nullptr ? *before : used->second, entry, name, key));
        }
      }
  }
  return made.entries;
}

Entries used_functions(const Definition& definition) {
  Entries functions;
  for (const Definition::Used& each : definition.used)
    for (const auto& entry : shared_functions(*each.file)) functions.push_back(entry);
  return functions;
}

Entries shared_functions(const Definition& file) {
  std::vector<JsonNode> nodes = file.extended;
  nodes.push_back(file.node);
  return merged(nodes, "functions");
}

}  // namespace xtape::model
