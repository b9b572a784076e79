// Writes folders in the format of the Hugging Face Hub.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/definition/definition.hpp"
#include "model/definition/read_back.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

using model::HuggingFaceMapping;
namespace fs = std::filesystem;

namespace {
void copy_files(const std::string& from, const std::string& to) {
  std::error_code failed;
  if (fs::equivalent(from, to, failed)) return;
  std::vector<std::string> names = model::side_files();
  names.emplace_back("chat_template.jinja");
  for (const std::string& name : names)
    if (path_exists(path_in(from, name))) write_file(path_in(to, name), read_file(path_in(from, name)));
}

struct AsJson {
  template <class T>
  Json operator()(const T& held) const {
    return held;
  }
  Json operator()(const Hyper::List& list) const {
    Json all = Json::array();
    for (const Hyper::Scalar& each : list) all.push_back(std::visit(*this, each));
    return all;
  }
};
Json json_of(const Hyper::Value& value) {
  return std::visit(AsJson{}, value);
}

/// Returns the config's value that corresponds to the model's value of a hyper-parameter.
Json word_for(const HuggingFaceMapping::Setting& setting, const Json& value, const Model& model) {
  if (value.is_array()) {
    Json all = Json::array();
    for (const Json& each : value) all.push_back(word_for(setting, each, model));
    return all;
  }
  if (setting.count) {
    Json labels = Json::object();  // the names that transformers uses
    for (std::int64_t i = 0; i < value.get<std::int64_t>(); ++i)
      labels[std::to_string(i)] = "LABEL_" + std::to_string(i);
    return labels;
  }
  for (const auto& [theirs, ours] : setting.values)
    if (model::is_word(value, ours)) return model::word_of(theirs);
  if (!setting.lists_words()) return value;
  throw DefinitionError("'" + setting.keys[0] + "' of a config.json has no value for '" + setting.hyper +
                        "' = " + value.dump() + " of model '" + model.name() + "'");
}

/// Returns whether the config's value `config` stands for the model's value `value` of the hyper-parameter.
bool means(const HuggingFaceMapping::Setting& setting, const Json& config, const Json& value) {
  const Json theirs = model::plain(config);
  if (setting.count && theirs.is_object()) return value == theirs.size();
  if (theirs.is_array() && value.is_array())
    return std::equal(theirs.begin(), theirs.end(), value.begin(), value.end(),
                      [&](const Json& word, const Json& each) { return means(setting, word, each); });
  for (const auto& word : setting.values)
    if (model::is_word(theirs, word.first)) return model::is_word(value, word.second);
  return !setting.lists_words() && theirs == value;
}

/// Writes one hyper-parameter under the key that the config already has for it, or else under its first key. Erases its
/// other keys. If the config already has the value, changes nothing, except that it erases the other keys of a count.
/// If the config has no key and the value applies without one, adds no key for a count and no key inside a nested
/// object. Elements of a list are always written.
void write_setting(Json& config, const HuggingFaceMapping::Setting& setting, const Model& model) {
  const Json value = json_of(model.hyper().at(setting.hyper));
  const auto has = [&](const std::string& key) {
    const Json* found = model::find_key(config, key);
    return found != nullptr && (!found->is_null() || setting.maps_null());
  };
  const auto there = std::ranges::find_if(setting.keys, has);
  const bool is_there = there != setting.keys.end(),
             same = is_there && means(setting, *model::find_key(config, *there), value);
  if (same && !setting.count) return;
  // A count that changes is written as entries, under the first key.
  const std::string key = is_there && (same || !setting.count) ? *there : setting.keys[0];
  for (const std::string& each : setting.keys)
    if (each != key) model::erase_key(config, each);
  if (same) return;
  const std::size_t dot = key.rfind('.');
  const bool optional = setting.count || (dot != std::string::npos && !model::is_element(key.substr(dot + 1)));
  if (there == setting.keys.end() && optional && setting.missing && means(setting, *setting.missing, value)) return;
  model::set_key(config, key, word_for(setting, value, model));
}

/// Sets the keys of a config that tell how the weights are stored. `usual` is the model's dtype.
Json with_dtype(const Store& weights, Dtype usual, Json config) {
  // `torch_dtype` is the older name of `dtype`. If both were present, a loader might read either of them.
  config.erase("torch_dtype");
  const auto stored_as = [&](Dtype dtype) {
    return std::ranges::any_of(weights, [&](const Store::Entry& entry) { return entry.value.dtype() == dtype; });
  };
  config["dtype"] = name_of(stored_as(Dtype::bfloat16)  ? Dtype::bfloat16
                            : stored_as(Dtype::float16) ? Dtype::float16
                                                        : usual);
  config.erase("quantization_config");
  for (const Dtype dtype : model::narrow_storages)
    if (!config.contains("quantization_config") && stored_as(dtype))
      config["quantization_config"] = {{"quant_method", "xtape"}, {"weights", name_of(dtype)}};
  return config;
}

Json config_of(const Model& model, const HuggingFaceMapping& mapping, Json config) {
  const std::string& architecture = mapping.architecture(model.name());
  for (const auto& [hyper, value] : mapping.fixed)
    if (json_of(model.hyper().at(hyper)) != value)
      throw DefinitionError("model '" + model.name() + "' has '" + hyper + "' = " + to_string(model.hyper().at(hyper)) +
                            ", but a " + architecture + " supports only " + value.dump() +
                            ": it cannot be saved as one");
  config["architectures"] = {architecture};
  config["model_type"] = mapping.model_type;
  for (const auto& setting : mapping.settings) write_setting(config, setting, model);
  for (const auto& [key, value] : mapping.config) model::set_key(config, key, value);
  return config;
}

}  // namespace

JsonNode model::read_config(const std::string& folder) {
  const std::string file = folder + "/" + config_file;
  if (!path_exists(file))
    throw FileError(
        folder + " has no " + config_file + ": " +
        (path_exists(folder) ? "it is not a folder of a model" : "there is no folder or file of this name"));
  const JsonNode config(read_file(file), file, JsonErrors::definition, JsonNumbers::any);
  if (!config.is_object()) config.fail("an object belongs here");
  return config;
}

std::shared_ptr<const model::Definition> model::mapped_definition(const Model& model) {
  auto definition = parse_definition(model.definition_text(), model.name());
  if (!definition->hugging_face)
    throw DefinitionError("the definition of model '" + model.name() +
                          "' has no entry \"hugging_face\", which says how such a folder holds the model");
  return definition;
}

namespace {
/// What a folder has of a model: its config without the dtype, its tensors by name and, for folders of own_type, its
/// definition.
struct Content {
  Json config;
  Store tensors;
  std::map<std::string, Axes> orders = {};  ///< Of tensors in blocks (BlockStorage).
  std::string definition = {};
};

Json config_like(const std::string& like) {
  return like.empty() ? Json(Json::object()) : model::read_config(like).json();
}

Content mapped_content(const Model& model, const model::FolderOptions& options) {
  const auto definition = model::mapped_definition(model);
  const HuggingFaceMapping& mapping = *definition->hugging_face;
  Content content{config_of(model, mapping, config_like(options.like)), {}};
  const bool keeps_blocks = options.weights != model.dtype();
  for (const Store::Entry& entry : model.exported_weights()) {
    if (contains(options.left_out, entry.name)) continue;
    const std::string tensor = model::written_name(mapping, entry.name);
    const auto found = model.orders().find(entry.name);
    const bool in_blocks = is_block(entry.value.dtype());
    Axes order = in_blocks && found != model.orders().end() ? found->second : Axes();
    const bool widens = in_blocks && !keeps_blocks;
    const Array weight = widens ? model::numbers_of(entry.value, order) : Array(entry.value);
    if (widens) order.clear();
    const auto add = [&](const std::string& name, const Array& values, std::int64_t part) {
      content.tensors.add(name, Array(values));
      if (!order.empty()) content.orders[name] = model::order_of_part(entry.name, order, part);
    };
    const std::optional<std::int64_t> count = model::tensors_of(tensor, weight.shape());
    if (!count) add(tensor, weight, model::StoredWeight::whole);
    for (std::int64_t i = 0; i < count.value_or(0); ++i) add(model::numbered(tensor, i), model::part_of(weight, i), i);
  }
  return content;
}

Content own_content(const Model& model, const model::FolderOptions& options) {
  Json config = config_like(options.like);
  config["architectures"] = {model.name()};
  config["model_type"] = model::own_type;
  return {std::move(config), model.weights(), model.orders(), model.definition_text()};
}

/// Writes the files of `model` to an existing folder. Returns the model that the folder contains.
Model write(const Model& model, const Content& content, const std::string& folder, const std::string& like,
            const std::string& name) {
  if (!like.empty()) copy_files(like, folder);
  if (!content.definition.empty()) write_file(path_in(folder, model::definition_file), content.definition);
  auto metadata = model::order_metadata(content.orders);
  metadata.emplace_back("format", "pt");
  save_arrays(folder + "/model.safetensors", content.tensors, metadata);
  write_file(folder + "/" + model::config_file, indented(with_dtype(content.tensors, model.dtype(), content.config)));
  return model::read_back(model, folder, name, content.config["model_type"]);
}

using MakeContent = Content (*)(const Model& model, const model::FolderOptions& options);

void save(const Model& model, const std::string& folder, const model::FolderOptions& options, MakeContent content) {
  model::write_files(folder, model::config_file, [&](const std::string& beside) {
    Model written = write(model, content(model, options), beside, options.like, folder);
    if (options.weights && *options.weights != model.dtype()) {
      written.store_weights_as(*options.weights);
      write(written, content(written, options), beside, options.like, folder);
    }
    if (options.add) options.add(beside);
  });
}
}  // namespace

void model::write_files(const std::string& folder, const std::string& config,
                        const std::function<void(const std::string& beside)>& fill) {
  if (!path_exists(folder)) {
    make_folders(folder_of(folder));
    return write_folder(folder, fill);
  }
  const std::string complete = path_in(folder, ".xtape-export");
  write_folder(complete, fill);
  // Moves the config last. A folder with a new config is therefore complete.
  for (const std::string& name : xtape::names_in(complete)) {
    if (is_folder(path_in(complete, name))) remove_if_possible(path_in(folder, name));
    if (name != config) rename_path(path_in(complete, name), path_in(folder, name));
  }
  rename_path(path_in(complete, config), path_in(folder, config));
  remove_if_possible(complete);
}

void save_hugging_face(const Model& model, const std::string& folder, const std::string& like,
                       std::optional<Dtype> weights) {
  model::mapped_definition(model);  // throws before anything is written
  save(model, folder, {.like = like, .weights = weights}, mapped_content);
}

std::string model::save_folder(const Model& model, const std::string& folder, const FolderOptions& options) {
  std::string why;
  try {
    save(model, folder, options, mapped_content);
  } catch (const DefinitionError& error) {
    why = error.what();
  } catch (const NotReadBack& error) {
    why = error.why;
  }
  if (!why.empty()) save(model, folder, options, own_content);
  return why;
}

void copy_hugging_face_files(const std::string& folder, const std::string& to) {
  const JsonNode config = model::read_config(folder);
  make_folders(to);
  copy_files(folder, to);
  write_file(to + "/" + model::config_file, read_file(config.file()));
}

}  // namespace xtape
