#include "hugging_face/adapter.hpp"

#include <algorithm>
#include <map>

namespace xtape::model {

std::pair<std::string, std::string> cut_last(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::pair(std::string(), name) : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

std::vector<std::string> shortest_endings(const std::set<std::string>& chosen, const std::set<std::string>& all) {
  const auto each_ending = [](const std::string& name, const auto& visit) {  // from the shortest one
    for (std::size_t at = name.size(); at != std::string::npos && at != 0;) {
      at = name.rfind('.', at - 1);
      if (visit(at == std::string::npos ? name : name.substr(at + 1))) return;
    }
  };
  std::set<std::string> others;  // the endings of names that are not chosen
  for (const std::string& name : all)
    if (chosen.count(name) == 0)
      each_ending(name, [&](const std::string& ending) {
        others.insert(ending);
        return false;
      });
  std::set<std::string> endings;
  for (const std::string& name : chosen)
    each_ending(name, [&](const std::string& ending) {
      const bool found = others.count(ending) == 0 || ending == name;
      if (found) endings.insert(ending);
      return found;
    });
  return {endings.begin(), endings.end()};
}

}  // namespace xtape::model
