// Opens folders in the format of the Hugging Face Hub.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/definition/definition.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/recording/model_data.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape {

using model::HuggingFaceMapping;
namespace fs = std::filesystem;

namespace {
using model::Overrides;

std::string quoted(const std::vector<std::string>& keys) {
  return joined(keys, [](const std::string& key) { return "'" + key + "'"; });
}

/// Returns the override for a value in a config. A list becomes a tuple of the overrides for its elements.
std::string override_for(const HuggingFaceMapping::Setting& setting, const std::string& key, const JsonNode& node) {
  if (setting.count && node.is_object()) return std::to_string(node.entries().size());
  if (node.is_array()) {
    std::string tuple;
    for (const JsonNode& each : node.elements()) {
      if (each.is_array() || each.is_object()) each.fail("an element of '" + key + "' is a number, a flag or a text");
      tuple += override_for(setting, key, each) + ", ";
    }
    return "(" + tuple + ")";
  }
  const Json value = model::plain(node.json());
  for (const auto& [theirs, ours] : setting.values)
    if (model::is_word(value, theirs)) return model::to_text(model::word_of(ours));
  const bool scalar = value.is_string() || value.is_number() || value.is_boolean();
  const std::string text = model::to_text(value);
  if (!scalar || text == "NaN")
    node.fail("'" + key + "' must be a number, a flag or a text, not " + (scalar ? text : value.dump()));
  if (setting.lists_words())
    node.fail("'" + key + "' is " + value.dump() + "; the definition supports " +
              joined(setting.values, [](const auto& word) { return word.first; }));
  return text;
}

/// Adds the override of one hyper-parameter: its value in the config, or the value that applies if the config has none.
void read_setting(const JsonNode& config, const HuggingFaceMapping::Setting& setting, const std::string& definition,
                  Overrides& overrides) {
  const std::string entry = "the entry \"hugging_face\" of " + definition;
  std::optional<JsonNode> null;
  for (const std::string& key : setting.keys) {
    const std::optional<JsonNode> node = model::find_key(config, key);
    if (!node) continue;
    if (!node->is_null() || setting.maps_null()) {
      overrides.emplace_back(setting.hyper, override_for(setting, key, *node));
      return;
    }
    null = node;
  }
  const bool default_is_null = setting.missing && setting.missing->is_null();
  if (null && !default_is_null)
    null->fail("this is null, and " + entry + " gives '" + setting.hyper +
               "' no value for null: write \"values\": {\"null\": …}");
  const std::string keys = (setting.keys.size() == 1 ? "the key " : "any of the keys ") + quoted(setting.keys);
  if (!setting.missing)
    config.fail("it does not have " + keys + " for the hyper-parameter '" + setting.hyper + "', and " + entry +
                " states no default");
  if (default_is_null && !setting.maps_null()) return;
  const JsonNode missing(setting.missing->dump(), definition + ", the default of " + keys, JsonErrors::definition);
  overrides.emplace_back(setting.hyper, override_for(setting, setting.keys[0], missing));
}

bool mentions(const model::Expression& expression, const std::string& name) {
  bool found = false;
  model::each_name(expression, [&](const model::Expression& each) { found = found || each.text == name; });
  return found;
}

/// Returns the config's settings, followed by the caller's. If the default of a hyper-parameter depends on a
/// hyper-parameter that the caller sets, ignores the config's setting. The default then follows the caller's value.
Overrides overrides_of(const model::Definition& definition, const HuggingFaceMapping& mapping, const JsonNode& config,
                       const Overrides& given) {
  std::set<std::string> callers;
  for (const auto& own : given) callers.insert(own.first);
  for (std::size_t before = callers.size() + 1; before != callers.size();) {  // repeats until no name is added
    before = callers.size();
    for (const model::Parameter& parameter : definition.hyper)
      if (parameter.initial && std::ranges::any_of(callers, [&](const std::string& name) {
            return mentions(parameter.initial->value, name);
          }))
        callers.insert(parameter.name);
  }
  Overrides overrides;
  for (const auto& setting : mapping.settings)
    if (callers.count(setting.hyper) == 0) read_setting(config, setting, definition.file, overrides);
  overrides.insert(overrides.end(), given.begin(), given.end());
  return overrides;
}

/// Returns the path of the definition that opens the architecture in `config`. The mapping of the definition at `path`
/// lists architectures and their definitions. Returns `path` if the mapping lists only one architecture, or if the
/// config names none. Throws DefinitionError if the mapping lists several architectures, but not that of the config.
std::string definition_of_architecture(const JsonNode& config, const std::string& path) {
  const auto definition = model::read_definition(path);
  if (!definition->hugging_face || !config.has("architectures")) return path;
  const auto& known = definition->hugging_face->architectures;
  const std::vector<JsonNode> named = config.at("architectures").elements();
  if (known.size() == 1 || named.empty()) return path;
  for (const auto& [architecture, name] : known)
    if (architecture == named[0].text()) return name == definition->name ? path : find_definition(name);
  named[0].fail("the architecture is \"" + named[0].text() + "\"; " + path + " supports " +
                joined(known, [](const auto& each) { return each.first; }));
}

/// Returns the path of the definition that adds adapters to the definition at `path`. Its name is the name of the
/// definition at `path` with "_lora" appended.
std::string definition_of_adapters(const std::string& path) {
  const std::string name = model::read_definition(path)->name;
  try {
    return find_definition(name + model::adapter_suffix);
  } catch (const FileError& error) {
    throw DefinitionError("adapters of '" + name + "' need a definition '" + name + model::adapter_suffix +
                          "': " + error.what());
  }
}

bool is_own(const JsonNode& config) {
  return config.at("model_type").text() == model::own_type;
}

/// The mapping of folders that have their definition: weights and hyper-parameters are as in the definition.
HuggingFaceMapping own_mapping() {
  HuggingFaceMapping mapping;
  mapping.model_type = model::own_type;
  mapping.ignored = {"*"};
  return mapping;
}

/// Returns the path of the definition for a folder. If `given` is not empty, this is the definition `given`. Otherwise
/// the folder has the definition, or its config determines it: model_type names a definition, whose mapping may name
/// another definition for the config's architecture. If `with_adapters`, the definition that adds adapters to the
/// determined definition is used instead.
std::string definition_for(const std::string& folder, const JsonNode& config, const std::string& given,
                           bool with_adapters) {
  const std::string& name = config.at("model_type").text();
  if (!given.empty()) return find_definition(given);
  if (is_own(config)) return path_in(folder, model::definition_file);
  std::string path;
  try {
    if (fs::path(name).has_parent_path()) throw FileError("there is no file '" + name + "'");
    path = find_definition(name);
  } catch (const FileError& error) {
    config.at("model_type")
        .fail("'model_type' is \"" + name + "\", and there is no definition of that name: " + error.what());
  }
  path = definition_of_architecture(config, path);
  return with_adapters ? definition_of_adapters(path) : path;
}

void check_config(const HuggingFaceMapping& mapping, const JsonNode& config, const std::string& definition) {
  const std::string& type = config.at("model_type").text();
  if (type != mapping.model_type)
    config.at("model_type")
        .fail("'model_type' is \"" + type + "\", and " + definition + " is for \"" + mapping.model_type + "\"");
  for (const auto& [key, value] : mapping.config)
    if (const auto found = model::find_key(config, key);
        found && found->json() != value && !(model::is_off(found->json()) && model::is_off(value)))
      found->fail("'" + key + "' is " + found->json().dump() + ", but " + definition + " supports only " +
                  value.dump());
}

using Adapters = std::shared_ptr<const model::AdapterFolder>;

/// Returns adapters of the model in `base`, or null if `folder` is empty.
Adapters adapters_in(const std::string& folder, const std::string& base) {
  return folder.empty() ? nullptr : std::make_shared<const model::AdapterFolder>(folder, base);
}

/// A folder and the definition that opens it.
struct Folder {
  JsonNode config;
  std::string path;  ///< The definition's file. If there is a text, the name of the text in errors.
  std::string text;  ///< The definition's text. If empty, the file `path` contains the text.
  std::shared_ptr<const model::Definition> definition;
  HuggingFaceMapping own;       ///< The mapping of a folder that has its definition.
  Adapters adapters = nullptr;  ///< Null if there are no adapters.

  Folder(const std::string& folder, const std::string& given, const Adapters& with = nullptr)
      : config(model::read_config(folder)),
        path(definition_for(folder, config, given, with != nullptr)),
        definition(model::read_definition(path)),
        own(own_mapping()),
        adapters(with) {
    check();
  }
  Folder(const std::string& folder, const std::string& name, const std::string& definition_text, const Adapters& with)
      : config(model::read_config(folder)),
        path(name),
        text(definition_text),
        definition(model::parse_definition(text, path)),
        own(own_mapping()),
        adapters(with) {
    check();
  }
  const HuggingFaceMapping& mapping() const { return is_own(config) ? own : *definition->hugging_face; }
  Model model(const ModelOptions& options) const {
    return text.empty() ? Model::load(path, options) : Model::parse(text, options, path);
  }

 private:
  void check() const {
    if (!is_own(config) && !definition->hugging_face)
      throw DefinitionError(path + " has no entry \"hugging_face\": " + config.file() + " cannot be read with it");
    check_config(mapping(), config, path);
    if (adapters && !mapping().adapter)
      throw DefinitionError("the entry \"hugging_face\" of " + path + " has no \"adapter\": " + adapters->path() +
                            " cannot be read with it");
  }
};

/// Returns the weights of a folder's adapters. Changes `options` so that they create a model with these adapters.
std::vector<model::StoredWeight> place_adapters(const Folder& opened, ModelOptions& options) {
  const HuggingFaceMapping::Adapter& mapping = *opened.mapping().adapter;
  const Overrides hyper = opened.adapters->hyper(mapping);
  ModelOptions without = options;
  without.initialise = false;
  if (const auto targets = mapping.hyper.find("target_modules"); targets != mapping.hyper.end())
    without.hyper.emplace_back(targets->second, "()");
  Overrides all = hyper;
  std::vector<model::StoredWeight> weights = opened.adapters->weights(opened.model(without), opened.mapping(), all);
  all.insert(all.end(), options.hyper.begin(), options.hyper.end());  // the caller's overrides come last
  options.hyper = std::move(all);
  return weights;
}

/// Returns the model that `options` describe. Throws FileError if the folder has adapters for modules that cannot have
/// adapters in the definition.
Model with_adapters_of(const Folder& opened, const ModelOptions& options) {
  try {
    return opened.model(options);
  } catch (const DefinitionError& error) {
    if (!opened.adapters) throw;
    throw FileError("'" + opened.adapters->path() +
                    "' has adapters for which the definition has no place, such as those of an embedding or of the "
                    "head: " +
                    error.what());
  }
}

/// Returns int8 or the block format in which the files store weights, or nothing.
std::optional<Dtype> narrow_storage(const std::vector<ArrayFile>& files) {
  for (const Dtype dtype : model::narrow_storages)
    if (model::has_dtype(files, dtype)) return dtype;
  return std::nullopt;
}

/// Gives weights in blocks the dtypes of the files, unless the caller has given them others. Those that are mapped stay
/// in their file.
void store_as_in_files(Model& model, const std::vector<model::StoredWeight>& stored, const WeightDtypes& given) {
  const WeightDtypes in_files = model::blocks_in(stored);
  WeightDtypes blocks;
  for (const auto& [weight, dtype] : in_files.rows())
    if (!given.of(weight)) blocks.add(weight, dtype);
  if (!blocks.empty()) model.allocate_weights_as(blocks);
  Store mapped;
  for (const model::StoredWeight& each : stored) {
    const Array* weight = model.weights().find(each.weight);
    if (weight == nullptr || !model::is_stored_as(each.described(), {model.weights(), model.orders()}, each.weight))
      continue;
    if (Array array = each.file->mapped(each.entry)) mapped.set(each.weight, array);
  }
  if (!mapped.empty()) model.use_weights(mapped);
}

/// Returns the model of an opened folder. The arguments are those of open_hugging_face. If `skipped` is not null, also
/// checks the shapes of weights that are not read, and adds the names of the tensors that are not used to `skipped`.
Model read_model(const Folder& opened, const std::string& folder, const ModelOptions& options,
                 const std::vector<std::string>& initialise, std::vector<std::string>* skipped = nullptr) {
  ModelOptions chosen = options;
  chosen.hyper = overrides_of(*opened.definition, opened.mapping(), opened.config, options.hyper);
  chosen.initialise = options.initialise && !initialise.empty();
  chosen.initialised = initialise;
  if (!options.initialise && !model::has_weights(folder) && !opened.adapters) return opened.model(chosen);
  const std::vector<ArrayFile> files = model::weight_files(folder);
  std::vector<std::string> unused;
  std::vector<model::StoredWeight> stored = model::tensors_of(files, opened.mapping(), unused), adapters;
  model::settle_ties(opened.mapping(), stored, chosen.hyper);
  const std::optional<Dtype> narrow = narrow_storage(files);
  if (chosen.weights.empty() && narrow == Dtype::int8) chosen.weights = narrow;
  if (narrow == Dtype::int8 && (!initialise.empty() || opened.adapters))
    throw FileError(folder + " stores weights as int8: it cannot be trained, and no weights can be added to it");
  if (opened.adapters) adapters = place_adapters(opened, chosen);
  for (const model::StoredWeight& each : adapters) chosen.weights.put_first(each.weight, chosen.dtype);
  Model model = with_adapters_of(opened, chosen);
  model::name_weights(opened.mapping(), model.weights(), stored, unused);
  store_as_in_files(model, stored, chosen.weights);
  for (model::StoredWeight& each : adapters) each.is_exact = true;
  stored.insert(stored.end(), adapters.begin(), adapters.end());
  std::string where = files.size() == 1 ? "'" + files[0].path() + "'" : "the files of '" + folder + "'";
  if (opened.adapters) where += " and '" + opened.adapters->path() + "'";
  model::check_weight_patterns(model, "initialise", initialise);
  if (skipped != nullptr) {
    model::check_weights({model.weights(), model.orders()}, stored, where, model.name(), initialise);
    *skipped = std::move(unused);
  }
  if (options.initialise)
    model::read_weights({model.weights(), model.orders()}, stored, where, model.name(), initialise);
  return model;
}
}  // namespace

std::string model::definition_of_folder(const std::string& folder) {
  return definition_for(folder, read_config(folder), "", false);
}

Dtype stored_weights(const std::string& folder) {
  using model::has_dtype;
  const std::vector<ArrayFile> files = model::weight_files(folder);
  if (const auto narrow = narrow_storage(files)) return *narrow;
  const bool brain = has_dtype(files, Dtype::bfloat16), ieee = has_dtype(files, Dtype::float16);
  return brain == ieee ? Dtype::float32 : brain ? Dtype::bfloat16 : Dtype::float16;
}

bool is_hugging_face(const std::string& path) {
  const std::string config = path_in(path, model::config_file);
  return path_exists(config) && !is_folder(config);
}

Model open_hugging_face(const std::string& folder, const ModelOptions& options, const std::string& definition,
                        const std::vector<std::string>& initialise, const std::string& adapter) {
  return read_model(Folder(folder, definition, adapters_in(adapter, folder)), folder, options, initialise);
}

Model model::open_hugging_face_with(const std::string& definition_text, const std::string& name,
                                    const std::string& folder, const ModelOptions& options,
                                    const std::string& adapter) {
  return read_model(Folder(folder, name, definition_text, adapters_in(adapter, folder)), folder, options, {});
}

std::vector<std::string> model::check_hugging_face(const std::string& folder, ModelOptions options,
                                                   const std::string& adapter) {
  options.initialise = false;
  std::vector<std::string> skipped;
  read_model(Folder(folder, "", adapters_in(adapter, folder)), folder, options, {}, &skipped);
  std::map<std::string, int> counts;
  for (const std::string& name : skipped) ++counts[without_numbers(name)];
  std::vector<std::string> said;
  for (const auto& [name, count] : counts)
    said.push_back(count == 1 ? name : name + " (" + std::to_string(count) + ")");
  return said;
}

std::vector<std::string> hugging_face_warnings(const std::string& folder, const std::string& definition,
                                               const std::string& adapter) {
  const Folder opened(folder, definition, adapters_in(adapter, folder));
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& file, const std::string& reader, const std::vector<std::string>& keys) {
    if (!keys.empty())
      warnings.push_back(file + " has " + (keys.size() == 1 ? "a key that " : "keys that ") + reader +
                         " does not know and ignores: " + quoted(keys));
  };
  warn(opened.config.file(), opened.path, model::unlisted_keys(opened.mapping(), opened.config.json()));
  if (path_exists(folder + "/" + model::adapter_config_file) && adapter.empty())
    warnings.push_back(folder +
                       " has a config.json and an adapter_config.json: its adapters are ignored, unless they are "
                       "asked for as the adapters of this folder");
  if (opened.adapters) warn(opened.adapters->config_path(), "xtape", opened.adapters->unlisted_keys());
  const std::string generation = path_in(folder, "generation_config.json");
  if (path_exists(generation))
    warn(generation, "xtape",
         model::unlisted_generation_keys(
             JsonNode(read_file(generation), generation, JsonErrors::file, JsonNumbers::any)));
  const auto warn_of_files = [&](const std::string& where, const std::vector<std::string>& names) {
    if (!names.empty())
      warnings.push_back(where + " has " + (names.size() == 1 ? "a file that is" : "files that are") +
                         " not read: " + quoted(names));
  };
  warn_of_files(folder, model::unread_files(folder));
  if (is_folder(adapter) && adapter != folder) warn_of_files(adapter, model::unread_adapter_files(adapter));
  return warnings;
}

}  // namespace xtape
