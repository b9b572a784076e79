/// The files of a folder in the format of the Hugging Face Hub.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "model/definition/definition.hpp"
#include "model/hugging_face/mapping.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

inline constexpr const char* config_file = "config.json";

// Folders whose "model_type" is this have their definition in a file, and its weights under their own names. Only xtape
// reads them.

inline constexpr const char* own_type = "xtape";
inline constexpr const char* definition_file = "definition.json";

/// Reads the config of `folder`. Throws FileError if the folder has no config, and DefinitionError if the config is not
/// a JSON object.
JsonNode read_config(const std::string& folder);
/// Returns the path of the definition that the config of a folder determines. Throws FileError or DefinitionError.
std::string definition_of_folder(const std::string& folder);

/// Returns the names of the classes from the config's "id2label", or an empty list if the config has none. Throws
/// DefinitionError if the keys are not the integers from 0.
std::vector<std::string> class_names(const std::string& folder);

/// Returns the definition of a model. Throws DefinitionError if the definition has no entry "hugging_face".
std::shared_ptr<const Definition> mapped_definition(const Model& model);

/// Lets `fill` write files to a new folder, which becomes `folder`. If `folder` exists, moves the files into it, and
/// moves the file `config` last. If `fill` throws, nothing changes.
void write_files(const std::string& folder, const std::string& config,
                 const std::function<void(const std::string& beside)>& fill);

/// What a folder is to have besides the model.
struct FolderOptions {
  std::string like = {};                        ///< See save_hugging_face.
  std::optional<Dtype> weights = std::nullopt;  ///< See save_hugging_face.
  std::vector<std::string> left_out = {};       ///< Weights that are not written if the definition has a mapping.
  /// Adds files. `beside` is the folder, complete but not in its place.
  std::function<void(const std::string& beside)> add = {};
};
/// Like save_hugging_face. But if the definition has no mapping, or the folder would not hold the model, writes a
/// folder that has its definition, and returns why transformers cannot read it. Otherwise returns "".
std::string save_folder(const Model& model, const std::string& folder, const FolderOptions& options);

/// Returns the names of the files that a folder may have besides its config and its weights.
const std::vector<std::string>& side_files();
/// Returns the names of the files in a folder that are neither read nor known not to matter. Reads no files but
/// model.safetensors.index.json. Throws FileError.
std::vector<std::string> unread_files(const std::string& folder);
/// The same for a folder of adapters.
std::vector<std::string> unread_adapter_files(const std::string& folder);

/// Throws the errors that open_hugging_face would throw. Reads only the names, shapes and dtypes of the weights.
/// Returns the names of the tensors that the definition does not use. A star stands for a number: "h.*.attn.bias (12)".
std::vector<std::string> check_hugging_face(const std::string& folder, ModelOptions options,
                                            const std::string& adapter);

/// Like open_hugging_face, but with a definition given as text. Errors call the text `name`.
Model open_hugging_face_with(const std::string& definition_text, const std::string& name, const std::string& folder,
                             const ModelOptions& options, const std::string& adapter);

// Keys of a config.json. Dots separate the keys of nested objects and the indices of list elements:
// "rope_parameters.rope_theta", "time_step_limit.1".

/// Returns the value of a key. The value may be a JSON null. Returns nullopt or nullptr if the key, or an object that
/// contains the key, is missing.
std::optional<JsonNode> find_key(const JsonNode& config, const std::string& key);
const Json* find_key(const Json& config, const std::string& key);

/// Whether a value of a config turns nothing on: null, false, or an empty list or object.
bool is_off(const Json& value);

/// Returns the words of a text, which are separated by spaces.
std::vector<std::string> words_in(const std::string& text);

/// Returns whether a word of a key is the index of a list element.
bool is_element(const std::string& word);

/// Returns the number if the value is a number in the form of transformers 5, {"__float__": "Infinity"}. Otherwise
/// returns the value itself.
Json plain(const Json& value);

/// Returns the config.json value for a text of a mapping: null, a flag, a number, or else a string.
Json word_of(const std::string& text);
/// Returns whether the text of a mapping stands for `value`.
bool is_word(const Json& value, const std::string& text);
/// Converts a value of a config to an override. An infinity becomes "inf" or "-inf". NaN has no expression and becomes
/// "NaN".
std::string to_text(const Json& value);

/// Sets a key. Creates the objects and lists that contain the key.
void set_key(Json& config, const std::string& key, Json value);

/// Removes a key, and objects that become empty.
void erase_key(Json& config, const std::string& key);

/// Returns the keys of a config that are not null, not mentioned in the mapping, and not ignored for every model.
std::vector<std::string> unlisted_keys(const HuggingFaceMapping& mapping, const Json& config);
/// Returns the keys of a generation_config.json that change what transformers generates, and are not read.
std::vector<std::string> unlisted_generation_keys(const JsonNode& config);

}  // namespace xtape::model
