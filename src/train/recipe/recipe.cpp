#include <charconv>
#include <filesystem>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/train.hpp"

namespace xtape {

using train::KeySpec;
namespace fs = std::filesystem;

namespace {
/// Calls take(key) for each key whose value is a path. In the recipe, paths are relative to its directory. In settings,
/// they are relative to the working directory.
template <class Take>
void for_each_path(KeySpec::Paths paths, const Take& take) {
  for (const train::KeyTable& table : train::key_tables())
    for (const KeySpec& key : table.keys)
      if (key.paths == paths) take(table.dotted(key));
}

std::string resolved(const std::string& key, const std::string& path, const fs::path& directory) {
  const fs::path whole = (directory / path).lexically_normal();
  // A definition or chat template without a directory may be an installed one, so its name is kept if there is no such
  // file.
  if ((key == "definition" || key == "data.template") && !is_plain_file(whole.string()) &&
      !fs::path(path).has_parent_path())
    return path;
  return whole.string();
}

Json* find(Json& root, const std::string& dotted) {
  Json* value = &root;
  for (std::size_t at = 0; at <= dotted.size();) {
    const std::size_t dot = std::min(dotted.find('.', at), dotted.size());
    if (!value->is_object()) return nullptr;
    const auto child = value->find(dotted.substr(at, dot - at));
    if (child == value->end()) return nullptr;
    value = &*child;
    at = dot + 1;
  }
  return value;
}

/// Calls change(value) for the value under a key of `object`, or of each object of a list of sections.
template <class Change>
void for_each_value(Json& object, const std::string& dotted, const Change& change) {
  const std::size_t dot = dotted.find('.');
  if (object.is_array()) {
    for (Json& each : object) for_each_value(each, dotted, change);
  } else if (object.is_object() && object.contains(dotted.substr(0, dot))) {
    Json& child = object[dotted.substr(0, dot)];
    if (dot == std::string::npos)
      change(child);
    else
      for_each_value(child, dotted.substr(dot + 1), change);
  }
}

/// Resolves the paths whose keys begin with `prefix`.
void resolve_paths(Json& root, const fs::path& directory, const std::string& prefix = "") {
  for_each_path(KeySpec::Paths::one, [&](const std::string& key) {
    if (!key.starts_with(prefix)) return;
    for_each_value(root, key, [&](Json& value) {
      if (value.is_string()) value = resolved(key, value.get<std::string>(), directory);
    });
  });
}

/// Returns the value of a setting: its text parsed as JSON, or the text itself if it is not valid JSON.
Json value_of(const Setting& setting) {
  try {
    return JsonText(setting.value, "--set " + setting.key, JsonErrors::definition).root();
  } catch (const DefinitionError&) {
    return setting.value;
  }
}

/// Removes keys whose value is null. A null setting thus unsets a key of the recipe.
void drop_nulls(Json& value) {
  if (!value.is_structured()) return;
  for (auto each = value.begin(); each != value.end();) {
    if (value.is_object() && each->is_null()) {
      each = value.erase(each);
    } else {
      if (!value.is_object() || each.key() != "changes") drop_nulls(*each);  // a former value may be null
      ++each;
    }
  }
}

fs::path working_directory() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  if (failed) throw FileError("cannot get the working directory: " + failed.message());
  return here;
}

/// If a recipe starts from a folder of adapters, changes it to start from their base model, with the adapters.
void resolve_adapter(Json& root) {
  const Json* from = find(root, "from");
  if (from == nullptr || !from->is_string() || root.contains("adapter")) return;
  const std::string folder = from->get<std::string>();
  if (!is_adapter(folder)) return;
  root["from"] = fs::absolute(base_of_adapter(folder)).lexically_normal().string();
  root["adapter"] = folder;
}

/// Resolves the paths of files in a value, which may be a section of them.
void resolve_files(Json& value, const std::string& key, const fs::path& directory,
                   const std::vector<Setting>& settings) {
  if (value.is_object()) {
    for (auto& [name, child] : value.items()) resolve_files(child, key + "." + name, directory, settings);
    return;
  }
  bool set = false;
  for (const Setting& each : settings) {
    set = set || key == each.key || key.starts_with(each.key + ".");
    if (each.key == key && !value.is_string() && !value.is_array())
      value = each.value;  // a path may also be valid JSON, such as "2020"
  }
  const auto resolve = [&](Json& file) {
    if (file == "-")
      file = train::standard_input;
    else if (file.is_string() && !directory.empty())
      file = resolved(key, file.get<std::string>(), set ? working_directory() : directory);
  };
  if (value.is_array())
    std::for_each(value.begin(), value.end(), resolve);
  else
    resolve(value);
}

/// Resolves the paths of the data's files. If the data has a folder, the paths stay relative to this folder.
void resolve_files(Json& root, fs::path directory, const std::vector<Setting>& settings) {
  if (find(root, "data.folder") != nullptr) directory.clear();
  for_each_path(KeySpec::Paths::files, [&](const std::string& key) {
    for (const std::string split : {"", "validation_", "test_"}) {
      const std::string of_split = "data." + split + key.substr(std::string("data.").size());
      if (Json* value = find(root, of_split)) resolve_files(*value, of_split, directory, settings);
    }
  });
}

/// Returns the element of a list that a part of a setting's key names. `list` is the key of the list.
Json& element_of(Json& array, const std::string& list, const std::string& part, const Setting& setting) {
  std::size_t index = 0;
  const char* const end = part.data() + part.size();
  const auto [read, error] = std::from_chars(part.data(), end, index);
  if (error == std::errc() && read == end && index < array.size()) return array[index];
  throw DefinitionError("--set " + setting.key + ": '" + list + "' is a list of " + std::to_string(array.size()) +
                        ": its elements are called " + list + ".0, " + list + ".1 …");
}

void apply(Json& root, const Setting& setting) {
  Json* value = &root;
  std::string plain;  // the key without the numbers of elements of lists
  for (std::size_t at = 0; at <= setting.key.size();) {
    const std::size_t dot = std::min(setting.key.find('.', at), setting.key.size());
    const std::string part = setting.key.substr(at, dot - at), before = setting.key.substr(0, at == 0 ? 0 : at - 1);
    if (value->is_null()) *value = Json::object();
    if (value->is_array()) {
      value = &element_of(*value, before, part, setting);
    } else if (value->is_object()) {
      value = &(*value)[part];
      plain += (plain.empty() ? "" : ".") + part;
    } else {
      throw DefinitionError("--set " + setting.key + ": '" + before + "' is not an object");
    }
    at = dot + 1;
  }
  *value = value_of(setting);
  const fs::path here = working_directory();
  // A path is always text, even if it is also valid JSON, such as "2020".
  for_each_path(KeySpec::Paths::one, [&](const std::string& key) {
    if (plain == key && !value->is_null()) *value = resolved(key, setting.value, here);
  });
  resolve_paths(root, here, plain + ".");
}
}  // namespace

Setting Setting::parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (equals == std::string::npos || key.empty() || key.front() == '.' || key.back() == '.' ||
      key.find("..") != std::string::npos)
    throw DefinitionError("'" + text + "' must have the form key=value");
  return {key, text.substr(equals + 1)};
}

namespace {
/// A recipe with its settings, as text and as JSON.
struct Loaded {
  JsonNode source;
  Json json;
  std::string text;
};

Loaded loaded(const std::string& text, const std::string& file, const std::vector<Setting>& settings) {
  Loaded made{JsonNode(text, file, JsonErrors::definition), {}, {}};
  made.json = made.source.json();
  if (made.json.is_object()) {
    resolve_paths(made.json, fs::absolute(file).parent_path());
    for (const Setting& setting : settings) apply(made.json, setting);
    drop_nulls(made.json);
    resolve_adapter(made.json);
    train::resolve_lora(made.json, made.source, settings);
    resolve_files(made.json, fs::absolute(file).parent_path(), settings);
  }
  try {
    made.text = made.json.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw DefinitionError(file + ": a setting or a path is not UTF-8");
  }
  return made;
}
}  // namespace

std::string train::recipe_text(const std::string& text, const std::string& file, const std::vector<Setting>& settings) {
  return loaded(text, file, settings).text;
}

Recipe Recipe::load(const std::string& path, const std::vector<Setting>& settings) {
  const std::string file = find_definition(path, "recipes");
  return train::recipe_of_text(read_file(file), file, settings);
}

Recipe train::recipe_of_text(const std::string& text, const std::string& file, const std::vector<Setting>& settings) {
  const Loaded made = loaded(text, file, settings);
  Recipe recipe = train::read_recipe(made.json, made.source, settings);
  recipe.text = made.text;
  return recipe;
}

}  // namespace xtape
