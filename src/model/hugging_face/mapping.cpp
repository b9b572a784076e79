#include "model/hugging_face/mapping.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"

namespace xtape::model {

namespace {
std::vector<std::string> texts(const JsonNode& node) {
  if (node.is_string()) return {node.text()};
  std::vector<std::string> all;
  for (const JsonNode& each : node.elements()) all.push_back(each.text());
  if (all.empty()) node.fail("at least one text belongs here");
  return all;
}

void check_known(const std::string& name, const std::vector<std::string>& hyper, const JsonNode& node) {
  if (!contains(hyper, name)) node.fail("there is no hyper-parameter '" + name + "'" + did_you_mean(name, hyper));
}

HuggingFaceMapping::Setting read_setting(const std::string& hyper, const JsonNode& node) {
  HuggingFaceMapping::Setting setting{.hyper = hyper};
  if (!node.is_object()) {
    setting.keys = texts(node);
    return setting;
  }
  node.only({"keys", "values", "default", "count"});
  setting.keys = texts(node.at("keys"));
  setting.count = node.has("count") && node.at("count").flag();
  if (setting.count && node.has("values")) node.at("values").fail("a count has no \"values\"");
  if (node.has("values"))
    for (const auto& [theirs, ours] : node.at("values").entries()) {
      if (!ours.is_string() && !ours.json().is_number() && !ours.json().is_boolean())
        ours.fail("a text, a number or a flag belongs here: the value of '" + hyper + "'");
      setting.values.emplace_back(theirs, ours.is_string() ? ours.text() : ours.json().dump());
    }
  if (node.has("default")) setting.missing = node.at("default").json();
  return setting;
}

std::vector<std::pair<std::string, Json>> values(const JsonNode& node) {
  std::vector<std::pair<std::string, Json>> all;
  for (const auto& [name, value] : node.entries()) all.emplace_back(name, value.json());
  return all;
}

/// Reads pairs of parts of names: the part to replace and its replacement.
std::vector<std::pair<std::string, std::string>> replacements(const JsonNode& node) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [from, to] : node.entries()) {
    if (std::ranges::count(to.text(), '*') > std::ranges::count(from, '*'))
      to.fail("each star here needs a star in '" + from + "'");
    all.emplace_back(from, to.text());
  }
  return all;
}

void read_weights(const JsonNode& node, const std::vector<std::string>& hyper, HuggingFaceMapping& mapping) {
  node.only({"names", "former", "prefix", "without_prefix", "skip", "tied"});
  if (node.has("names")) mapping.names = replacements(node.at("names"));
  if (node.has("former")) mapping.former = replacements(node.at("former"));
  if (node.has("prefix")) mapping.prefix = node.at("prefix").text();
  if (node.has("without_prefix")) mapping.without_prefix = texts(node.at("without_prefix"));
  if (node.has("skip")) mapping.skip = texts(node.at("skip"));
  if (!node.has("tied")) return;
  for (const auto& [weight, tie] : node.at("tied").entries()) {
    tie.only({"weight", "hyper"});
    mapping.ties.push_back({weight, tie.at("weight").text(), tie.at("hyper").text()});
    check_known(mapping.ties.back().hyper, hyper, tie.at("hyper"));
  }
}

HuggingFaceMapping::Adapter read_adapter(const JsonNode& node, const std::vector<std::string>& hyper) {
  node.only({"hyper", "weights", "config"});
  HuggingFaceMapping::Adapter adapter;
  const JsonNode names = node.at("hyper"), weights = node.at("weights");
  names.only({"r", "lora_alpha", "lora_dropout", "target_modules"});
  for (const char* needed : {"r", "lora_alpha"}) names.at(needed);
  for (const auto& [key, name] : names.entries()) {
    check_known(name.text(), hyper, name);
    adapter.hyper.emplace(key, name.text());
  }
  weights.only({"lora_A", "lora_B"});
  adapter.a = weights.at("lora_A").text();
  adapter.b = weights.at("lora_B").text();
  if (node.has("config")) adapter.config = values(node.at("config"));
  return adapter;
}
}  // namespace

bool HuggingFaceMapping::Adapter::transposed() const {
  return std::ranges::any_of(config,
                             [](const auto& entry) { return entry.first == "fan_in_fan_out" && entry.second == true; });
}

const std::string& HuggingFaceMapping::architecture(const std::string& definition) const {
  for (const auto& [architecture, of] : architectures)
    if (of == definition) return architecture;
  return architectures[0].first;
}

bool HuggingFaceMapping::Setting::maps_null() const {
  return std::ranges::any_of(values, [](const auto& word) { return word.first == "null"; });
}

bool HuggingFaceMapping::Setting::lists_words() const {
  return std::ranges::any_of(values, [](const auto& word) { return word.first != "null"; });
}

namespace {
/// Merges `node` over `base` if both are objects or both are lists. Otherwise returns `node`. With `deep`, also merges
/// entries of the same name.
JsonNode over(const JsonNode& base, const JsonNode& node, bool deep) {
  if (base.is_array() && node.is_array()) {
    std::vector<JsonNode> all = base.elements();
    for (const JsonNode& each : node.elements()) all.push_back(each);
    return node.with_elements(all);
  }
  if (!base.is_object() || !node.is_object()) return node;
  auto all = base.entries();
  for (const auto& [name, value] : node.entries()) {
    const auto same = [&name = name](const auto& each) { return each.first == name; };
    const auto old = std::ranges::find_if(all, same);
    if (old == all.end())
      all.emplace_back(name, value);
    else
      old->second = deep ? over(old->second, value, name == "weights") : value;
  }
  return node.with_entries(all);
}

/// Returns the object without the entries whose names are in `other`.
JsonNode without(const JsonNode& object, const JsonNode& other) {
  auto all = object.entries();
  const auto taken = [&](const auto& each) { return other.has(each.first); };
  all.erase(std::remove_if(all.begin(), all.end(), taken), all.end());
  return object.with_entries(all);
}
}  // namespace

JsonNode extended_mapping(const JsonNode& base, const JsonNode& node) {
  auto all = over(base, node, true).entries();
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& each) { return each.first == "extends"; }),
            all.end());
  // A hyper-parameter must not be both in "hyper" and in "fixed". It stays where the extending mapping has it.
  for (auto& [key, value] : all) {
    if (key == "hyper" && node.has("fixed")) value = without(value, node.at("fixed"));
    if (key == "fixed" && node.has("hyper")) value = without(value, node.at("hyper"));
  }
  return node.with_entries(all);
}

HuggingFaceMapping read_hugging_face(const JsonNode& node, const std::vector<std::string>& hyper) {
  node.only({"about", "model_type", "architecture", "hyper", "fixed", "config", "ignored", "weights", "adapter"});
  HuggingFaceMapping mapping;
  mapping.json = node.json();
  mapping.model_type = node.at("model_type").text();
  if (const JsonNode architecture = node.at("architecture"); architecture.is_object()) {
    for (const auto& [name, definition] : architecture.entries())
      mapping.architectures.emplace_back(name, definition.text());
    if (mapping.architectures.empty()) architecture.fail("at least one architecture belongs here");
  } else {
    mapping.architectures = {{architecture.text(), ""}};
  }
  for (const auto& [name, entry] : node.at("hyper").entries()) {
    check_known(name, hyper, entry);
    mapping.settings.push_back(read_setting(name, entry));
  }
  if (node.has("fixed")) {
    mapping.fixed = values(node.at("fixed"));
    for (const auto& each : mapping.fixed) check_known(each.first, hyper, node.at("fixed"));
  }
  if (node.has("config")) mapping.config = values(node.at("config"));
  if (node.has("ignored")) mapping.ignored = texts(node.at("ignored"));
  if (node.has("weights")) read_weights(node.at("weights"), hyper, mapping);
  if (node.has("adapter")) mapping.adapter = read_adapter(node.at("adapter"), hyper);
  return mapping;
}

namespace {
/// Returns the words of a name, which are separated by dots.
std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char letter : name) {
    if (letter == '.')
      words.emplace_back();
    else
      words.back() += letter;
  }
  return words;
}

/// Replaces the first run of words that matches `pattern`. Each star of `replacement` becomes the word that the
/// corresponding star of `pattern` matches.
std::vector<std::string> renamed(const std::vector<std::string>& name, const std::vector<std::string>& pattern,
                                 std::vector<std::string> replacement) {
  const auto same = [](const std::string& word, const std::string& wanted) { return wanted == "*" || word == wanted; };
  const auto found = std::search(name.begin(), name.end(), pattern.begin(), pattern.end(), same);
  if (found == name.end()) return name;
  auto word = found, star = pattern.begin();
  for (std::string& each : replacement) {
    if (each != "*") continue;
    for (; *star != "*"; ++star) ++word;
    each = *word++;
    ++star;
  }
  replacement.insert(replacement.begin(), name.begin(), found);
  replacement.insert(replacement.end(), found + std::ssize(pattern), name.end());
  return replacement;
}
}  // namespace

namespace {
std::string joined_words(const std::vector<std::string>& words) {
  std::string all = words[0];
  for (std::size_t i = 1; i < words.size(); ++i) all += "." + words[i];
  return all;
}

std::string replaced(const std::string& name, const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> words = words_of_name(name);
  for (const auto& [from, to] : pairs) words = renamed(words, words_of_name(from), words_of_name(to));
  return joined_words(words);
}
}  // namespace

std::string without_numbers(const std::string& tensor) {
  std::vector<std::string> words = words_of_name(tensor);
  for (std::string& word : words)
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos) word = "*";
  return joined_words(words);
}

std::string tensor_name(const HuggingFaceMapping& mapping, const std::string& weight) {
  return replaced(weight, mapping.names);
}

std::string written_name(const HuggingFaceMapping& mapping, const std::string& weight) {
  const std::string tensor = tensor_name(mapping, weight);
  return matches_any(tensor, mapping.without_prefix) ? tensor : mapping.prefix + tensor;
}

std::optional<std::int64_t> tensors_of(const std::string& tensor, const Shape& weight) {
  const std::vector<std::string> words = words_of_name(tensor);
  if (weight.empty() || !contains(words, "#")) return std::nullopt;
  return weight[0];
}

std::string numbered(const std::string& tensor, std::int64_t number) {
  return replaced(tensor, {{"#", std::to_string(number)}});
}

std::string present_name(const HuggingFaceMapping& mapping, const std::string& tensor) {
  return replaced(tensor, mapping.former);
}

bool matches(const std::string& name, const std::string& pattern) {
  // `star` is the position of the last star. It has matched the characters before `taken`. On a mismatch it matches one
  // more character.
  std::size_t at = 0, in = 0, star = std::string::npos, taken = 0;
  while (at < name.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      taken = at;
    } else if (in < pattern.size() && pattern[in] == name[at]) {
      ++in;
      ++at;
    } else if (star != std::string::npos && name[taken] != '.') {
      in = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  while (in < pattern.size() && pattern[in] == '*') ++in;
  return in == pattern.size();
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& each) { return matches(name, each); });
}

}  // namespace xtape::model
