/// Folders of PEFT, which have low-rank adapters of a model and not its other weights.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hugging_face/weights.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

inline constexpr const char* adapter_config_file = "adapter_config.json";
inline constexpr const char* adapter_weights_file = "adapter_model.safetensors";
inline constexpr const char* adapter_prefix = "base_model.model.";                         ///< Begins names of tensors,
inline constexpr const char *adapter_a = ".lora_A.weight", *adapter_b = ".lora_B.weight";  ///< and these end them.

/// A name without its last word, and this word: "h.0.attn.weight" is "h.0.attn" and "weight".
std::pair<std::string, std::string> cut_last(const std::string& name);

/// A folder of adapters, opened.
class AdapterFolder {
 public:
  /// Reads the config and the names and shapes of tensors. Throws FileError or DefinitionError, which names file and
  /// key, if a file is missing or damaged, or if the adapters are of a kind that is not supported.
  explicit AdapterFolder(const std::string& folder);

  /// What the config says of the hyper-parameters that `mapping` has for it, apart from the targets.
  Overrides hyper(const HuggingFaceMapping::Adapter& mapping) const;
  /// The weights for adapters of modules of `base`, whose definition has the mapping, by the names of these. Adds the
  /// override that makes them the targets. Throws FileError if `base` lacks a module, or a module lacks A or B.
  std::vector<StoredWeight> weights(const Model& base, const HuggingFaceMapping& mapping, Overrides& overrides) const;
  const std::string& path() const { return file_.path(); }  ///< Of the file with the weights.
  const std::string& config_path() const { return config_.file(); }
  /// Keys of the config that are not known and may affect the model.
  std::vector<std::string> unlisted_keys() const;

 private:
  /// The tensors of one module.
  struct Pair {
    std::string a, b;  ///< Their names; empty if the file lacks one.
    std::size_t a_entry = 0, b_entry = 0;
  };
  void read_config();
  void check_shape(const ArrayFile::Entry& entry, std::size_t axis) const;
  void check_targets(const std::map<std::string, std::string>& modules) const;

  JsonNode config_;
  ArrayFile file_;
  std::int64_t rank_ = 0;
  std::map<std::string, Pair> pairs_;  ///< By the names of modules, without adapter_prefix.
};

/// The names of the weights of `model` that are adapters. Throws DefinitionError if its definition has no mapping for
/// them.
std::vector<std::string> adapter_weights(const Model& model);

/// The names of the modules that `names` of weights are in, and of those around them.
std::set<std::string> modules_around(const std::vector<std::string>& names);
/// The last word of a name, its last two, and so on to the whole name.
std::vector<std::string> endings_of(const std::string& name);
/// The fewest words at the ends of the names `chosen` that no other name in `all` ends with, as target_modules of PEFT.
std::vector<std::string> shortest_endings(const std::set<std::string>& chosen, const std::set<std::string>& all);

}  // namespace xtape::model
