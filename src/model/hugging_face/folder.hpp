/// The files of a folder in the format of the Hugging Face Hub.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "model/definition/definition.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

inline constexpr const char* config_file = "config.json";

/// Reads the config of `folder`. Throws FileError if the folder has no config, and DefinitionError if the config is not
/// a JSON object.
JsonNode read_config(const std::string& folder);

/// Returns the names of the classes from the config's "id2label", or an empty list if the config has none. Throws
/// DefinitionError if the keys are not the integers from 0.
std::vector<std::string> class_names(const std::string& folder);

/// Returns the definition of a model. Throws DefinitionError if the definition has no entry "hugging_face".
std::shared_ptr<const Definition> mapped_definition(const Model& model);

/// Lets `fill` write files to a new folder, which becomes `folder`. If `folder` exists, moves the files into it, and
/// moves the file `config` last. If `fill` throws, nothing changes.
void write_files(const std::string& folder, const std::string& config,
                 const std::function<void(const std::string& beside)>& fill);

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

}  // namespace xtape::model
