/// Models in folders as the Hugging Face Hub has them: config.json, model.safetensors, a tokenizer's files.
/// docs/definitions.md says how a definition is tied to such folders: nothing here knows any model.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 7
#error "this layer of xtape may not see the model layer"
#endif

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

/// Whether `path` is a folder with a config.json in it.
bool is_hugging_face(const std::string& path);

/// The model of a folder: its config.json gives hyper-parameters of a definition, model.safetensors (or the files that
/// model.safetensors.index.json names) the weights, whatever their floating dtype. `definition` is found as Model::load
/// does; empty: the one that is called after the config's model_type. `options.hyper` takes precedence over the config,
/// also for hyper-parameters whose defaults are worked out from what it sets; `options.initialise` false reads no
/// weights and leaves them at zero. `initialise` are patterns of weights that the folder may lack (`*` stands for
/// anything): these begin as the definition says, drawn by `options.seed`.
///
/// Throws FileError where a file is missing, or lists weights that are missing, unexpected or of the wrong shape; and
/// DefinitionError, with file and line, where the config asks for what the definition cannot do, or where a pattern
/// matches no weight.
Model open_hugging_face(const std::string& folder, const ModelOptions& options = {},
                        const std::string& definition = "", const std::vector<std::string>& initialise = {});

/// What open_hugging_face passes over in silence, a sentence each: keys of config.json that the definition does not know,
/// and that say more than where the file comes from. Throws as open_hugging_face does.
std::vector<std::string> hugging_face_warnings(const std::string& folder, const std::string& definition = "");

/// Writes config.json and model.safetensors to `folder`, which is made where it is not there. `like`, where it is not
/// empty, is a folder whose other words of config.json and tokenizer files go along. Throws DefinitionError where the
/// model's definition has no entry "hugging_face", or the folder has no word for a hyper-parameter's value; FileError.
void save_hugging_face(const Model& model, const std::string& folder, const std::string& like = "");

/// Copies what such a folder holds beside weights, where it is there: config.json, generation_config.json and the
/// tokenizer's files. Makes the folder `to`. Throws FileError.
void copy_hugging_face_words(const std::string& folder, const std::string& to);

}  // namespace xtape
