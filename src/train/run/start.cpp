// Where the weights of a new run come from: other runs, folders and files.
#include <filesystem>
#include <memory>
#include <set>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/weights/stored_weights.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"

namespace xtape::train {

namespace {
constexpr const char* ending = ".safetensors";

/// Returns the weights files of a checkpoint. The second has the weights that the first lacks.
std::vector<std::string> files_of_checkpoint(const std::string& checkpoint) {
  std::vector<std::string> files = {path_in(checkpoint, "weights.safetensors")};
  if (const std::string start = start_of(checkpoint); !start.empty()) files.push_back(start);
  return files;
}

/// Returns the weights files of a source.
std::vector<std::string> files_of(const WeightSource& source) {
  if (!is_folder(source.from)) return {source.from};
  if (path_exists(path_in(source.from, "recipe.json")))
    return files_of_checkpoint(chosen_checkpoint(path_in(source.from, checkpoints_folder), source.checkpoint));
  if (path_exists(path_in(source.from, "weights.safetensors"))) return files_of_checkpoint(source.from);
  std::vector<std::string> files;
  for (const std::string& name : names_in(source.from))
    if (name.ends_with(ending)) files.push_back(path_in(source.from, name));
  if (files.empty()) throw FileError(source.from + " is not a run, and has no " + ending + " file");
  std::ranges::sort(files);
  return files;
}

/// Returns the text that the star of `pattern` stands for, or nothing if the name does not match.
std::optional<std::string> star_of(const std::string& name, const std::string& pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return name == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
  return name.substr(before.size(), name.size() - before.size() - after.size());
}

std::string with_star(const std::string& pattern, const std::string& text) {
  const std::size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.substr(0, star) + text + pattern.substr(star + 1);
}

/// Returns the weight of the model that the array of this name holds, or nothing if it is not taken.
std::optional<std::string> weight_of(const std::string& array, const WeightSource& source) {
  std::string name = array;
  for (const auto& [from, to] : source.rename)
    if (const auto star = star_of(name, from)) {
      name = with_star(to, *star);
      break;
    }
  const auto star = star_of(name, source.take);
  return star ? std::optional(with_star(source.into, *star)) : std::nullopt;
}
}  // namespace

void read_start(Model& model, const Recipe& recipe) {
  for (const WeightSource& source : recipe.start) {
    model::check_weight_patterns(model, "start.into", {source.into});
    Store wanted;
    for (const Store::Entry& weight : model.weights())
      if (star_of(weight.name, source.into)) wanted.add(weight.name, Array(weight.value));
    std::vector<std::unique_ptr<ArrayFile>> files;
    std::vector<model::StoredWeight> stored;
    std::set<std::string> seen;
    for (const std::string& path : files_of(source)) {
      const ArrayFile& file = *files.emplace_back(model::open_weights(path));
      for (std::size_t i = 0; i < file.entries().size(); ++i) {
        const std::string& name = file.entries()[i].name;
        if (!seen.insert(name).second && path.ends_with(first_weights_file)) continue;
        if (const auto weight = weight_of(name, source))
          stored.push_back({.weight = *weight, .file = &file, .entry = i});
      }
    }
    model::read_weights({wanted, model.orders()}, stored, source.from, model.name(), recipe.initialise);
  }
}

}  // namespace xtape::train
