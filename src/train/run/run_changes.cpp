#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/run_parts.hpp"

namespace xtape::train {

namespace {
/// A key whose value has changed. A value that was missing or is missing now is null.
struct Change {
  std::string key;
  Json before, after;
};

/// Appends the innermost keys whose values differ.
void add_changes(const std::string& key, const Json& before, const Json& after, std::vector<Change>& changes) {
  if (before == after) return;
  const bool nested = (before.is_object() || before.is_null()) && (after.is_object() || after.is_null());
  if (!nested) return changes.push_back({key, before, after});
  const auto value = [](const Json& object, const std::string& name) {
    return object.contains(name) ? object[name] : Json();
  };
  const std::string prefix = key.empty() ? "" : key + ".";
  for (const auto& [name, old] : before.items()) add_changes(prefix + name, old, value(after, name), changes);
  for (const auto& [name, made] : after.items())
    if (!before.contains(name)) add_changes(prefix + name, Json(), made, changes);
}

std::vector<Change> changes_of(const Json& before, const Json& after) {
  std::vector<Change> changes;
  add_changes("", before, after, changes);
  return changes;
}

Json parsed(const std::string& recipe) {
  return JsonText(recipe, "recipe.json", JsonErrors::file).root();
}

constexpr const char* in_run = "definition.json";  // its path in the recipe of a run
constexpr const char* record = "changes";
constexpr const char* last_step = "until_step";
constexpr const char* values = "was";

/// Adds the former values to the last element of `list` if it ends at the same step, otherwise as a new element. Of two
/// former values at the same step, the first was in effect.
void add_element(std::int64_t step, const Json& was, Json& list) {
  if (list.empty() || list.back()[last_step] != step) list.push_back({{last_step, step}, {values, Json::object()}});
  Json& last = list.back()[values];
  for (const auto& [key, value] : was.items())
    if (!last.contains(key)) last[key] = value;
}

/// Returns the value of a key such as "schedule.rate", or null if there is none.
Json value_at(const Json& recipe, const std::string& key) {
  const Json* value = &recipe;
  for (std::size_t at = 0; at <= key.size();) {
    const std::size_t dot = std::min(key.find('.', at), key.size());
    const std::string name = key.substr(at, dot - at);
    if (!value->is_object() || !value->contains(name)) return {};
    value = &value->at(name);
    at = dot + 1;
  }
  return *value;
}

/// Returns the record of `before` with the new changes at `step`. Elements of later steps, which the run has left, end
/// at `step` too. If a value is the same again, or no update was made with the former values, nothing is kept.
Json recorded(const Json& before, const Json& after, std::int64_t step) {
  Json list = Json::array(), was = Json::object();
  if (before.contains(record))
    for (const Json& element : before[record])
      add_element(std::min(element[last_step].get<std::int64_t>(), step), element[values], list);
  for (const Change& change : changes_of(before, after)) was[change.key] = change.before;
  add_element(step, was, list);
  Json last = Json::object();
  for (const auto& [key, value] : list.back()[values].items())
    if (value_at(after, key) != value) last[key] = value;
  if (last.empty() || step == 0)
    list.erase(list.size() - 1);
  else
    list.back()[values] = last;
  return list;
}

std::string described(const Change& change) {
  return "'" + change.key + "' " + (change.before.is_null() ? "has its default" : "is " + change.before.dump()) +
         " in this run and cannot " +
         (change.after.is_null() ? "go back to its default" : "become " + change.after.dump());
}
}  // namespace

void check_changes(const std::string& directory, const std::string& before, const std::string& after,
                   const std::vector<Setting>& settings) {
  std::vector<std::string> refused;
  for (const Change& change : changes_of(parsed(before), parsed(after))) {
    const std::string why = why_kept(change.key);
    if (why.empty()) continue;
    const auto of_change = [&](const Setting& each) {
      return change.key == each.key || change.key.starts_with(each.key + ".") ||
             each.key.starts_with(change.key + ".");  // an element of a list
    };
    const auto setting = std::ranges::find_if(settings, of_change);
    refused.push_back((setting == settings.end() ? "" : "--set " + setting->key + ": ") + described(change) + ": " +
                      why);
  }
  if (refused.empty()) return;
  const bool one = refused.size() == 1;
  throw DefinitionError(directory + "/recipe.json" + (one ? refused[0].starts_with("--set") ? ", " : ": " : ":\n  ") +
                        joined(refused, {}, ";\n  ") + ". A new run can have " +
                        (one ? "another value" : "other values") +
                        "; docs/reference/recipes/runs.md says which keys may change");
}

std::string write_changes(const std::string& directory, const std::string& before, const std::string& after,
                          std::int64_t step) {
  const Json old = parsed(before);
  Json made = parsed(after);
  const Json list = recorded(old, made, step);
  const Json known = value_at(old, record);
  if (changes_of(old, made).empty() && list == (known.is_null() ? Json::array() : known)) return before;
  made.erase(record);
  if (!list.empty()) made[record] = list;
  const std::string text = made.dump(2) + "\n";
  made["definition"] = in_run;
  write_file(directory + "/recipe.json", made.dump(2) + "\n");
  return text;
}

std::vector<Setting> settings_of_update(const std::string& recipe, std::int64_t update) {
  const Json changes = value_at(parsed(recipe), record);
  std::vector<Setting> settings;
  for (auto change = changes.rbegin(); change != changes.rend() && (*change)[last_step] >= update; ++change)
    for (const auto& [key, value] : (*change)[values].items())
      settings.push_back({key, value.is_string() && !Json::accept(value.get<std::string>()) ? value.get<std::string>()
                                                                                            : value.dump()});
  return settings;
}

}  // namespace xtape::train
