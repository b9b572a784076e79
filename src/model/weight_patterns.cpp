#include "weight_patterns.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "nearest.hpp"

namespace xtape::model {

bool matches_weight(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& each) { return fnmatch(each.c_str(), name.c_str(), 0) == 0; });
}

namespace {
/// The names of weights, and likely patterns for them: "h.0.attn.bias", "h.*.attn.bias", "*.bias".
std::vector<std::string> likely_patterns(const Store& weights) {
  std::set<std::string> patterns;
  for (const Store::Entry& entry : weights) {
    patterns.insert(entry.name);
    std::string starred;
    for (std::size_t at = 0; at <= entry.name.size();) {
      const std::size_t dot = std::min(entry.name.find('.', at), entry.name.size());
      const std::string step = entry.name.substr(at, dot - at);
      const bool number = !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
      starred += (at == 0 ? "" : ".") + (number ? "*" : step);
      if (dot < entry.name.size()) patterns.insert("*" + entry.name.substr(dot));
      at = dot + 1;
    }
    patterns.insert(starred);
  }
  return {patterns.begin(), patterns.end()};
}
}  // namespace

void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto matched = [&](const Store::Entry& entry) { return matches_weight(entry.name, {pattern}); };
    if (std::any_of(model.weights().begin(), model.weights().end(), matched)) continue;
    const std::string meant = did_you_mean(pattern, likely_patterns(model.weights()));
    const std::string example = model.weights().empty() ? "" : "; its names are like '" + model.weights()[0].name + "'";
    throw DefinitionError("'" + key + "': no weight of model '" + model.name() + "' matches '" + pattern + "'" +
                          (meant.empty() ? example : meant));
  }
}

}  // namespace xtape::model
