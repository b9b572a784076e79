#include "model/hugging_face/adapter.hpp"

namespace xtape::model {

std::pair<std::string, std::string> cut_last(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::pair(std::string(), name)
                                  : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

std::set<std::string> modules_around(const std::vector<std::string>& names) {
  std::set<std::string> modules;
  for (std::string path : names)
    for (std::size_t dot; (dot = path.rfind('.')) != std::string::npos;) {
      path.erase(dot);
      if (!modules.insert(path).second) break;
    }
  return modules;
}

std::vector<std::string> endings_of(const std::string& name) {
  std::vector<std::string> endings;
  for (std::size_t dot = name.size(); dot != std::string::npos && dot != 0;) {
    dot = name.rfind('.', dot - 1);
    endings.push_back(dot == std::string::npos ? name : name.substr(dot + 1));
  }
  return endings;
}

std::vector<std::string> shortest_endings(const std::set<std::string>& chosen, const std::set<std::string>& all) {
  std::set<std::string> others;  // the endings of names that are not chosen
  for (const std::string& name : all)
    if (chosen.count(name) == 0)
      for (const std::string& ending : endings_of(name)) others.insert(ending);
  std::set<std::string> shortest;
  for (const std::string& name : chosen)
    for (const std::string& ending : endings_of(name))
      if (others.count(ending) == 0 || ending == name) {
        shortest.insert(ending);
        break;
      }
  return {shortest.begin(), shortest.end()};
}

}  // namespace xtape::model
