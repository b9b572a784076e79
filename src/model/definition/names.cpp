// Hyper-parameters and definition files by name.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "model/definition/definition.hpp"
#include "model/models_directory.hpp"
#include "xtape/model.hpp"

namespace xtape {

namespace {
const char* kind_of(const Hyper::Value& value) {
  constexpr const char* names[] = {"a flag", "an integer", "a number", "a string", "a list"};
  return names[value.index()];
}

template <class T>
const T& typed(const Hyper& hyper, const std::string& name, const char* wanted) {
  const Hyper::Value& value = hyper.at(name);
  if (const T* typed = std::get_if<T>(&value)) return *typed;
  throw Error("hyper-parameter '" + name + "' is " + kind_of(value) + " (" + to_string(value) + "), not " + wanted);
}

/// Returns the names of the definitions in a directory. Removes ".json" from these names, unless `name` has this
/// extension too. The extension would otherwise dominate the edit distance to a short name.
std::vector<std::string> definitions_like(const std::string& name, const std::filesystem::path& directory) {
  const bool whole = std::filesystem::path(name).extension() == ".json";
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.path().extension() == ".json")
      names.push_back((whole ? entry.path().filename() : entry.path().stem()).string());
  std::ranges::sort(names);  // the order of a directory is not defined
  return names;
}

bool is_definition(const std::string& path) {
  return is_plain_file(path) || !model::adapted_definition(path).empty();
}
}  // namespace

const Hyper::Value& Hyper::at(const std::string& name) const {
  if (const Value* found = items_.find(name)) return *found;
  throw Error("there is no hyper-parameter '" + name + "'" + did_you_mean(name, items_.names()));
}

std::int64_t Hyper::integer(const std::string& name) const {
  return typed<std::int64_t>(*this, name, "an integer");
}
bool Hyper::flag(const std::string& name) const {
  return typed<bool>(*this, name, "a flag");
}
const std::string& Hyper::text(const std::string& name) const {
  return typed<std::string>(*this, name, "a string");
}

double Hyper::number(const std::string& name) const {
  if (const auto* whole = std::get_if<std::int64_t>(&at(name))) return static_cast<double>(*whole);
  return typed<double>(*this, name, "a number");
}

std::string to_string(const Hyper::Value& value) {
  struct Text {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
      char shortest[32];
      return {shortest, std::to_chars(shortest, shortest + sizeof shortest, number).ptr};
    }
    std::string operator()(const std::string& text) const {
      std::string quoted = "'";
      for (const char c : text) {
        if (c == '\'' || c == '\\') quoted += '\\';
        quoted += c;
      }
      return quoted + "'";
    }
    std::string operator()(const Hyper::List& list) const {
      std::string all;
      for (const Hyper::Scalar& each : list) all += std::visit(*this, each) + ", ";
      if (!list.empty()) all.resize(all.size() - (list.size() == 1 ? 1 : 2));  // the forms are (4,) and (4, 5)
      return "(" + all + ")";
    }
  };
  return std::visit(Text{}, value);
}

std::string models_directory() {
  namespace fs = std::filesystem;
  const char* chosen = std::getenv("XTAPE_MODELS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  // An installed tree, even after a move, and a build tree have the models at the same place relative to their
  // programs.
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  const fs::path beside = (program.parent_path() / XTAPE_MODELS_FROM_PROGRAM).lexically_normal();
  return !program.empty() && fs::is_directory(beside, none) ? beside.string() : XTAPE_MODELS_DIRECTORY;
}

std::string model::adapted_definition(const std::string& path) {
  const std::string end = std::string(adapter_suffix) + ".json";
  if (!path.ends_with(end) || path_exists(path)) return "";
  const std::string base = path.substr(0, path.size() - end.size()) + ".json";
  return is_plain_file(base) ? base : "";
}

std::string find_definition(const std::string& name, const std::string& folder) {
  namespace fs = std::filesystem;
  for (const std::string& each : {name, name + ".json"})
    if (is_definition(each)) return each;
  if (fs::path(name).has_parent_path()) throw FileError("there is no file '" + name + "'");
  const fs::path models = models_directory();
  const fs::path last = folder.empty() ? models : models / folder;
  for (const fs::path& directory : {models, last})
    for (const std::string& each : {name, name + ".json"})
      if (is_definition((directory / each).string())) return (directory / each).string();
  std::error_code none;
  throw FileError("there is no file '" + name + "', here or in " + last.string() +
                  (fs::is_directory(last, none) ? did_you_mean(name, definitions_like(name, last))
                                                : "; set XTAPE_MODELS to the directory of the models"));
}

}  // namespace xtape
