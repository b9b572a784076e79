#include "train/recipe/key_spec.hpp"

#include <charconv>
#include <ostream>

#include "base/messages/wording.hpp"

namespace xtape::train {

namespace {
std::string in_code(const std::string& text) {
  return "`" + text + "`";
}

/// Returns the shortest decimal number, with a short exponent: 1e-8.
std::string shortest(double number) {
  char text[32];
  std::string digits(text, std::to_chars(text, text + sizeof text, number).ptr);
  const std::size_t e = digits.find("e-0");
  return e == std::string::npos ? digits : digits.erase(e + 2, 1);
}
}  // namespace

void describe(KeySpec& key, bool initial) {
  key.values = "`true`, `false`";
  key.initial = in_code(initial ? "true" : "false");
}
void describe(KeySpec& key, double initial, const Bounds& bounds) {
  const std::string words = bounds.words;
  key.values = words.empty() ? "number" : "number, " + words.substr(0, words.find(':'));
  key.initial = in_code(shortest(initial));
}
void describe(KeySpec& key, std::int64_t initial, Range range) {
  const std::string low = std::to_string(range.low);
  key.values =
      range.high == Range().high ? "integer, at least " + low : "integer, " + low + " to " + std::to_string(range.high);
  if (initial >= range.low) key.initial = in_code(std::to_string(initial));
}
void describe(KeySpec& key, const std::string& initial, const Names& names) {
  const auto quoted = [](const std::string& name) { return in_code('"' + name + '"'); };
  key.values = joined(names, quoted);
  if (!initial.empty()) key.initial = quoted(initial);
}

std::string why_kept(std::string key) {
  for (const std::string split : {"data.validation_", "data.test_"})
    if (key.starts_with(split)) key = "data." + key.substr(split.size());
  std::string found;
  std::size_t longest = 0;
  for (const KeyTable& table : key_tables())
    for (const KeySpec& each : table.keys) {
      const std::string name = table.dotted(each);
      const bool whole = key == name || key.starts_with(name + ".");
      if (!whole || name.size() < longest || !(each.kept || table.section.empty())) continue;
      longest = name.size();
      found = each.kept.value_or("");
    }
  return found;
}

void write_keys(std::ostream& out) {
  for (const KeyTable& table : key_tables()) {
    out << "## " << (table.section.empty() ? "recipe" : table.section)
        << "\n\n| key | values | default | resume | meaning |\n|---|---|---|---|---|\n";
    for (const KeySpec& key : table.keys)
      if (!key.doc.empty())
        out << "| `" << table.dotted(key) << "` | " << key.values << " | " << (key.required ? "required" : key.initial)
            << " | " << (why_kept(table.dotted(key)).empty() ? "yes" : "no") << " | " << key.doc << " |\n";
    out << '\n';
  }
}

}  // namespace xtape::train
