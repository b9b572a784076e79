#include "cli/run_options.hpp"

#include <charconv>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "cli/opened_model.hpp"
#include "model/definition/checks.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"

namespace xtape::cli {

namespace {
/// Splits "name=text" at the first '='. Throws WrongInput if there is no '=' or no name.
std::pair<std::string, std::string> halves(const std::string& word, const char* option) {
  const std::size_t equal = word.find('=');
  if (equal == 0 || equal == std::string::npos)
    throw WrongInput(std::string(option) + " needs name=value, not '" + word + "'");
  return {word.substr(0, equal), word.substr(equal + 1)};
}
}  // namespace

void add_definition(CLI::App& command, DefinitionOptions& arguments, const std::string& also) {
  add_option(command, "DEFINITION", arguments.definition,
             "A definition file, the name of an installed definition, a folder with a config.json, or a run" + also,
             required);
  add_option(command, "--set", arguments.set, "Set a hyper-parameter: n_layer=2, or hyper.n_layer=2")
      ->expected(1)
      ->take_all();
  add_option(command, "--dtype", arguments.dtype, "float32 or float64", shown);
}

ModelOptions model_options(const DefinitionOptions& arguments, bool initialise) {
  ModelOptions options;
  options.dtype = dtype_named(arguments.dtype);
  options.seed = arguments.seed;
  options.initialise = initialise;
  for (const std::string& word : arguments.set) {
    auto [name, text] = halves(word, "--set");
    if (name.rfind("hyper.", 0) == 0) name.erase(0, 6);
    options.hyper.emplace_back(name, text);
  }
  return options;
}

std::string recipe_file(const std::string& name) {
  if (path_exists(name) && !is_plain_file(name)) return "";
  try {
    const std::string file = find_definition(name, "recipes");
    return JsonNode(read_file(file), file, JsonErrors::file).has("data") ? file : "";
  } catch (const FileError&) {
    return "";  // the caller reports what else it expects
  }
}

Model load_model(const DefinitionOptions& arguments, bool initialise) {
  const ModelOptions options = model_options(arguments, initialise);
  if (path_exists(arguments.definition + "/recipe.json")) {
    Model model = Model::load(arguments.definition + "/definition.json", options);
    const std::string checkpoints = arguments.definition + "/" + train::checkpoints_folder;
    if (initialise && !train::checkpoints(checkpoints).empty()) train::load_checkpoint(model, checkpoints, {});
    return model;
  }
  if (const auto folder = model_folder(arguments.definition)) return open_folder(*folder, options);
  model::check_overrides(find_definition(arguments.definition), options.hyper);
  return Model::load(arguments.definition, options);
}

NamedSizes sizes_of(const std::string& text) {
  NamedSizes sizes;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t comma = std::min(text.find(',', first), text.size());
    const auto [name, digits] = halves(text.substr(first, comma - first), "--with");
    std::int64_t size = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || size < 0)
      throw WrongInput("--with needs sizes, such as b=2,t=8; '" + digits + "' is not a size");
    if (sizes.has(name)) throw WrongInput("--with has '" + name + "' twice");
    sizes.add(name, size);
    first = comma + 1;
  }
  return sizes;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace xtape::cli
