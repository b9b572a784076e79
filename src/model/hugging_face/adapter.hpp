/// Folders of PEFT, which contain the low-rank adapters of a model but not its other weights.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/hugging_face/mapping.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

inline constexpr const char* adapter_config_file = "adapter_config.json";
inline constexpr const char* adapter_weights_file = "adapter_model.safetensors";
inline constexpr const char* adapter_prefix = "base_model.model.";  ///< The beginning of tensor names.
inline constexpr const char *adapter_a = ".lora_A.weight", *adapter_b = ".lora_B.weight";  ///< Ends of tensor names.

/// Splits the last word off a name: "h.0.attn.weight" becomes "h.0.attn" and "weight".
std::pair<std::string, std::string> cut_last(const std::string& name);

/// Writes the adapters of a file in another format as a folder of PEFT. `base` is the folder of their base model.
using AdapterReader = void (*)(const std::string& file, const std::string& base, const std::string& folder);
/// Enables adapters in files whose names end in `ending` (".gguf"), in all threads.
void set_adapter_reader(const std::string& ending, AdapterReader reader);

/// An open folder of adapters.
class AdapterFolder {
 public:
  /// Reads the config and the names and shapes of tensors. The adapters of `base`, a folder of a model, may also be in
  /// a file for which there is a reader. Throws FileError or DefinitionError if a file is missing or damaged, or if
  /// adapters of this kind are not supported. The message names the file and the key.
  AdapterFolder(const std::string& folder, const std::string& base);

  /// Returns overrides with the config's values of the hyper-parameters in `mapping`. weights() adds the override for
  /// the targets.
  Overrides hyper(const HuggingFaceMapping::Adapter& mapping) const;
  /// Returns the weights of the adapters, named after the modules of `base` that they adapt. `mapping` is the mapping
  /// in the definition of `base`. Adds to `overrides` the override that makes these modules the targets. Throws
  /// FileError if `base` lacks a module, or if the folder lacks the tensor A or B of a module.
  std::vector<StoredWeight> weights(const Model& base, const HuggingFaceMapping& mapping, Overrides& overrides) const;
  const std::string& path() const { return path_; }  ///< The path of the file with the weights.
  const std::string& config_path() const { return config_.file(); }
  /// Returns the unknown keys of the config that may affect the model.
  std::vector<std::string> unlisted_keys() const;

 private:
  /// A folder of PEFT that is read, which may be temporary.
  struct Opened {
    JsonNode config;
    ArrayFile file;
    std::string path;
  };
  explicit AdapterFolder(Opened opened);
  static Opened opened(const std::string& folder, const std::string& base);
  /// The tensors of one module.
  struct Pair {
    std::string a, b;  ///< The names of the tensors; empty if the file lacks the tensor.
    std::size_t a_entry = 0, b_entry = 0;
  };
  void read_config();
  void check_shape(const ArrayFile::Entry& entry, std::size_t axis) const;
  void check_targets(const std::map<std::string, std::string>& modules) const;

  JsonNode config_;
  ArrayFile file_;
  std::string path_;
  std::int64_t rank_ = 0;
  std::map<std::string, Pair> pairs_;  ///< By the name of the module, without adapter_prefix.
};

/// Returns the names of the weights of `model` that are adapters. Throws DefinitionError if the definition of the model
/// has no mapping for adapters.
std::vector<std::string> adapter_weights(const Model& model);

/// Writes adapters as save_adapter does. `base` is the name of the base model that the config records, and
/// `base_folder` is the folder of the base model. If `base_folder` is empty, the written adapters are not checked by
/// read_back.
void write_adapter(const Model& model, const std::string& folder, const std::string& base,
                   const std::string& base_folder);

/// Returns the names of the modules that contain the weights `names`, and of all enclosing modules.
std::set<std::string> modules_around(const std::vector<std::string>& names);
/// Returns the endings of a name: its last word, its last two words, and so on to the whole name.
std::vector<std::string> endings_of(const std::string& name);
/// Returns, for each name in `chosen`, its shortest ending that is not an ending of a name in `all` outside of
/// `chosen`, or else the whole name. Each ending occurs once in the result. The endings serve as target_modules of
/// PEFT.
std::vector<std::string> shortest_endings(const std::set<std::string>& chosen, const std::set<std::string>& all);

}  // namespace xtape::model
