/// Reads and writes model folders of the Hugging Face Hub: config.json, model.safetensors and the tokenizer files. The
/// entry "hugging_face" of a definition (docs/reference/definitions.md) maps the definition to such folders.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

/// Whether `path` is a folder with a file config.json.
bool is_hugging_face(const std::string& path);

/// Opens the model of a folder. config.json gives the hyper-parameters of a definition. model.safetensors, or the files
/// that model.safetensors.index.json names, contain the weights. The weights have any float dtype, or int8 with scales
/// as written by save_hugging_face. `definition` is a path or name for find_definition. If it is empty, the name is the
/// config's model_type. `options.hyper` overrides the config. If the default of another hyper-parameter depends on an
/// overridden one, the default applies instead of the value in the config.
///
/// If options.initialise is false, open_hugging_face reads no weights, and all weights are zero.
///
/// The argument `initialise` (not options.initialise) lists patterns of weight names, in which `*` matches anything. A
/// weight that matches a pattern may be missing in the folder. It may also have another shape there, for example
/// because the labels of a classifier differ. The definition and options.seed then determine its initial values.
///
/// `adapter`, if not empty, is a folder of low-rank adapters in the format of PEFT. The model then contains the
/// adapters in addition to the weights of the folder. adapter_config.json gives the rank, scale and modules of the
/// adapters. If `definition` is empty, open_hugging_face uses the definition named BASE_lora, where BASE is the name of
/// the base model's definition.
///
/// Throws FileError if a file is missing. Throws FileError with a list if weights are missing, unexpected or of the
/// wrong shape. Throws DefinitionError with file and line if the definition does not support the config or a pattern
/// matches no weight.
Model open_hugging_face(const std::string& folder, const ModelOptions& options = {}, const std::string& definition = "",
                        const std::vector<std::string>& initialise = {}, const std::string& adapter = "");

/// Whether `path` is a folder of adapters, with a file adapter_config.json but no config.json.
bool is_adapter(const std::string& path);

/// Returns the folder of the base model. adapter_config.json names it in base_model_name_or_path, relative to the
/// working directory or to the adapter folder. Throws FileError or DefinitionError if there is no such folder.
std::string base_of_adapter(const std::string& folder);

/// Returns the dtype of the weights in the folder: int8, a block format, bfloat16, float16 or float32. It is float32
/// for wider floats, and for a mix of bfloat16 and float16. With this dtype as options.weights, open_hugging_face reads
/// the weights without conversion. Throws FileError.
Dtype stored_weights(const std::string& folder);

/// Returns sentences about parts of a folder that are not used although they may matter: keys of config.json that the
/// definition does not know, keys of generation_config.json that `generate` does not know, and files that are not read.
/// Files and keys that are known not to matter are left out. open_hugging_face ignores all of them silently. Reads no
/// weights. Errors are those of open_hugging_face.
std::vector<std::string> hugging_face_warnings(const std::string& folder, const std::string& definition = "",
                                               const std::string& adapter = "");

/// Writes config.json and model.safetensors to `folder`, creating it if necessary. If `like` is not empty,
/// save_hugging_face copies the other config keys and the tokenizer files of that folder. The "export" entries of
/// blocks merge weights (Model::exported_weights). save_hugging_face keeps the dtype of weights stored as bfloat16,
/// float16, int8 or in blocks. If `weights` is given, it converts to this dtype as Model::store_weights_as does. Other
/// programs can read bfloat16 and float16, but neither int8 nor blocks.
///
/// save_hugging_face writes a temporary folder and reads it back before it replaces `folder`. It reads with the
/// definition named by model_type, or with the model's own definition if there is no such definition. The weight names
/// must match the definition, and the logits on random tokens must match those of `model`. If a name or the logits
/// differ, save_hugging_face throws FileError with the difference and leaves `folder` as it was. Throws DefinitionError
/// if the definition has no entry "hugging_face" or the config cannot express the value of a hyper-parameter. Throws
/// FileError if a file cannot be read or written.
void save_hugging_face(const Model& model, const std::string& folder, const std::string& like = "",
                       std::optional<Dtype> weights = std::nullopt);

/// Writes the low-rank adapters of `model` in the format of PEFT: adapter_config.json and adapter_model.safetensors.
/// Creates `folder` if necessary. `base` names the base model of the adapters: a folder, or a repository of the Hugging
/// Face Hub. Throws DefinitionError, before it writes anything, if the definition's entry "hugging_face" has no
/// "adapter", or if the merged weights of `model` (Model::exported_weights) differ from those that PEFT computes. If
/// `base` is a folder, save_adapter reads the adapters back together with this base model. Throws FileError, and writes
/// nothing, if the model that it has read back does not give the logits of `model`. Throws FileError if a file cannot
/// be written.
void save_adapter(const Model& model, const std::string& folder, const std::string& base);

/// Copies config.json, generation_config.json, preprocessor_config.json and the tokenizer files, as far as they exist,
/// to the folder `to`. Creates `to` if necessary. Does not copy weights. Throws FileError.
void copy_hugging_face_files(const std::string& folder, const std::string& to);

}  // namespace xtape
