#include "hugging_face_mapping.hpp"

#include <algorithm>

#include "nearest.hpp"

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
  if (std::find(hyper.begin(), hyper.end(), name) == hyper.end())
    node.fail("there is no hyper-parameter '" + name + "'" + did_you_mean(name, hyper));
}

HuggingFaceMapping::Setting read_setting(const std::string& hyper, const JsonNode& node) {
  HuggingFaceMapping::Setting setting{hyper, {}, {}};
  if (!node.is_object()) {
    setting.keys = texts(node);
    return setting;
  }
  node.only({"keys", "values"});
  setting.keys = texts(node.at("keys"));
  for (const auto& [theirs, ours] : node.at("values").entries()) setting.values.emplace_back(theirs, ours.text());
  return setting;
}

std::vector<std::pair<std::string, Json>> values(const JsonNode& node) {
  std::vector<std::pair<std::string, Json>> all;
  for (const auto& [name, value] : node.entries()) all.emplace_back(name, value.json());
  return all;
}

void read_weights(const JsonNode& node, const std::vector<std::string>& hyper, HuggingFaceMapping& mapping) {
  node.only({"prefix", "without_prefix", "skip", "tied"});
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
}  // namespace

HuggingFaceMapping read_hugging_face(const JsonNode& node, const std::vector<std::string>& hyper) {
  node.only({"about", "model_type", "architecture", "hyper", "fixed", "config", "weights"});
  HuggingFaceMapping mapping;
  mapping.model_type = node.at("model_type").text();
  mapping.architecture = node.at("architecture").text();
  for (const auto& [name, entry] : node.at("hyper").entries()) {
    check_known(name, hyper, entry);
    mapping.settings.push_back(read_setting(name, entry));
  }
  if (node.has("fixed")) {
    mapping.fixed = values(node.at("fixed"));
    for (const auto& each : mapping.fixed) check_known(each.first, hyper, node.at("fixed"));
  }
  if (node.has("config")) mapping.config = values(node.at("config"));
  if (node.has("weights")) read_weights(node.at("weights"), hyper, mapping);
  return mapping;
}

bool matches(const std::string& name, const std::string& pattern) {
  // The last star, and where what it stands for ends so far: on a difference it takes one character more.
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
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& each) { return matches(name, each); });
}

}  // namespace xtape::model
