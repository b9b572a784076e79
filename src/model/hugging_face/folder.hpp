/// The files of a folder in the format of the Hugging Face Hub.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "definition.hpp"
#include "json_text.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

inline constexpr const char* config_file = "config.json";

/// Reads the config of `folder`. Throws FileError if there is none, and DefinitionError if it is not a JSON object.
JsonNode read_config(const std::string& folder);

/// The names of the classes, from the config's "id2label"; empty if it has none. Throws DefinitionError if its keys are
/// not the integers from 0.
std::vector<std::string> class_names(const std::string& folder);

/// The definition of a model. Throws DefinitionError if it has no entry "hugging_face".
std::shared_ptr<const Definition> mapped_definition(const Model& model);

/// Makes the folder with what `fill` writes to a new one, or moves these files into the folder if it exists; the file
/// `config` comes last. If `fill` throws, nothing has changed.
void write_files(const std::string& folder, const std::string& config,
                 const std::function<void(const std::string& beside)>& fill);

/// Throws what open_hugging_face would, and reads names, shapes and dtypes of the weights only.
void check_hugging_face(const std::string& folder, ModelOptions options, const std::string& adapter = "");

/// Like open_hugging_face, with a definition that is given as text; errors call it `name`.
Model open_hugging_face_with(const std::string& definition_text, const std::string& name, const std::string& folder,
                             const ModelOptions& options);

}  // namespace xtape::model
