/// Reading and writing model folders of the Hugging Face Hub: config.json, model.safetensors and a tokenizer's files. A
/// definition's entry "hugging_face" (docs/definitions.md) says how it maps to such folders.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

/// Whether `path` is a folder with a file config.json.
bool is_hugging_face(const std::string& path);

/// The model of a folder. config.json gives the hyper-parameters of a definition; model.safetensors, or the files that
/// model.safetensors.index.json names, gives the weights, of any float dtype, or of int8 with scales as
/// save_hugging_face writes them. `definition` is found as by Model::load; empty: that named like the config's
/// model_type. `options.hyper` overrides the config, and also hyper-parameters whose defaults depend on what it sets.
///
/// With options.initialise false, no weights are read; they are zero. Weights that match a pattern in `initialise`
/// (`*` matches anything) may be missing in the folder or have another shape there, such as a classifier of other
/// labels; they are initialised by the definition and options.seed.
///
/// `adapter`, if not empty, is a folder of low-rank adapters as PEFT writes them, which the model then has beside the
/// folder's weights. adapter_config.json gives their rank, scale and modules. Without `definition` the model has that
/// named like the folder's own, with "_lora" after it.
///
/// Throws FileError if a file is missing, or, with a list, if weights are missing, unexpected or of the wrong shape;
/// DefinitionError, with file and line, if the definition does not support a config or a pattern matches no weight.
Model open_hugging_face(const std::string& folder, const ModelOptions& options = {}, const std::string& definition = "",
                        const std::vector<std::string>& initialise = {}, const std::string& adapter = "");

/// Whether `path` is a folder of adapters: it has a file adapter_config.json and no config.json.
bool is_adapter(const std::string& path);

/// The folder of the model that adapters were made for, from base_model_name_or_path in their adapter_config.json: a
/// path from the working directory, or from the folder. Throws FileError or DefinitionError if there is no such folder.
std::string base_of_adapter(const std::string& folder);

/// The dtype that the folder stores weights as: int8, bfloat16, float16 or, for wider floats and where both halves
/// occur, float32. With it as options.weights, open_hugging_face reads such weights as they are. Throws FileError.
Dtype stored_weights(const std::string& folder);

/// What open_hugging_face silently ignores, one sentence each: keys of config.json that the definition does not know
/// and that may affect the model. Reads no weights; throws as open_hugging_face does.
std::vector<std::string> hugging_face_warnings(const std::string& folder, const std::string& definition = "",
                                               const std::string& adapter = "");

/// Writes config.json and model.safetensors to `folder`, creating it if necessary. `like`, if not empty, is a folder
/// whose other config keys and tokenizer files are copied. Weights are merged as blocks say (Model::exported_weights).
/// Those that are stored as bfloat16, float16 or int8 are written so, and all are stored as `weights` if it is given,
/// as by Model::store_weights_as; other programs read halves.
///
/// The folder is read back before it takes its place, with the definition that is named like its model_type (if there
/// is none, with that of `model`): its weights must be those that the definition has, and its logits on random tokens
/// must be those of `model`. If they are not, FileError says what differs, and nothing is written. Throws
/// DefinitionError if the definition has no entry "hugging_face" or the config cannot express a hyper-parameter's
/// value, and FileError.
void save_hugging_face(const Model& model, const std::string& folder, const std::string& like = "",
                       std::optional<Dtype> weights = std::nullopt);

/// Writes the low-rank adapters of `model` as PEFT reads them: adapter_config.json and adapter_model.safetensors, in
/// `folder`, which is created if necessary. `base` names the model that they adapt: a folder, or a repository of the
/// Hugging Face Hub. Throws DefinitionError, before anything is written, if the definition's entry "hugging_face" has
/// no "adapter" or if its merged weights (Model::exported_weights) are not those that PEFT computes; and FileError.
void save_adapter(const Model& model, const std::string& folder, const std::string& base);

/// Copies everything except the weights, if present, to the folder `to`, creating it if necessary: config.json,
/// generation_config.json and the tokenizer's files. Throws FileError.
void copy_hugging_face_files(const std::string& folder, const std::string& to);

}  // namespace xtape
