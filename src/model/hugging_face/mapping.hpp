/// The mapping of a definition to folders in the format of the Hugging Face Hub. It maps keys of config.json to
/// hyper-parameters, and weights to names of tensors.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_text.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/array.hpp"

namespace xtape::model {

struct HuggingFaceMapping {
  /// A hyper-parameter and its keys in config.json. The first key with a value counts. Dots separate the keys of nested
  /// objects.
  struct Setting {
    std::string hyper;
    std::vector<std::string> keys = {};
    /// Pairs of a config value and the corresponding value of the hyper-parameter, as texts (see word_of). If several
    /// config values correspond to the same hyper-parameter value, the first one is written. If there are no pairs, or
    /// only a pair for null, all other values are the same in the config and in the hyper-parameter.
    std::vector<std::pair<std::string, std::string>> values = {};
    /// The config value that applies if no key has a value. If `missing` is null and `values` have no null, the
    /// definition's default applies instead. nullopt means that one of the keys must have a value.
    std::optional<Json> missing = {};
    /// If true, the config has an object, such as the names of labels, and the hyper-parameter is the number of its
    /// entries.
    bool count = false;

    bool maps_null() const;    ///< Whether `values` have null. If not, null counts as no value.
    bool lists_words() const;  ///< Whether `values` have more than null. If so, no other values are allowed.
  };
  /// A weight that may be tied to another weight, and the flag that ties them. Files may lack a tied weight.
  struct Tie {
    std::string weight, other, hyper;
  };
  /// The form of a definition's low-rank adapters in PEFT folders.
  struct Adapter {
    /// Hyper-parameters by their keys in adapter_config.json: "r", "lora_alpha" and, if the definition has them,
    /// "lora_dropout" and "target_modules".
    std::map<std::string, std::string> hyper;
    std::string a, b;  ///< The last words of the weights' names; A is [rank, in], B [out, rank].
    std::vector<std::pair<std::string, Json>> config;  ///< Further keys to write.

    /// Whether folders store adapted weights as [in, out].
    bool transposed() const;
  };
  Json json;  ///< The entry of the definition.
  std::string model_type;
  /// Architectures and the definitions that open them. An empty definition name stands for any definition.
  std::vector<std::pair<std::string, std::string>> architectures;
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, Json>> fixed;   ///< Hyper-parameters that must have this value in folders.
  std::vector<std::pair<std::string, Json>> config;  ///< Keys of config.json that must have this value if present.
  std::vector<std::string> ignored;                  ///< Patterns of keys that do not affect the computation.
  std::string prefix;  ///< The beginning of tensor names. Tensors that are read may lack it.
  std::vector<std::pair<std::string, std::string>>
      names;                                ///< Names of modules in the definition and in the folder; see tensor_name.
  std::vector<std::string> without_prefix;  ///< Patterns of tensors that are written without the prefix.
  std::vector<std::string> skip;            ///< Patterns of names without the prefix. Such tensors need no weight.
  std::vector<std::pair<std::string, std::string>> former;  ///< Parts of names in old files, and their current form.
  std::vector<Tie> ties;
  std::optional<Adapter> adapter;

  /// Returns the architecture that the definition with this name opens.
  const std::string& architecture(const std::string& definition) const;
};

/// Merges the mapping `node` over the mapping `base` that it extends. For entries of the same name, the entry of `node`
/// counts. Lists are concatenated.
JsonNode extended_mapping(const JsonNode& base, const JsonNode& node);

/// Reads the entry "hugging_face" of a definition whose hyper-parameters are `hyper`. Throws DefinitionError.
HuggingFaceMapping read_hugging_face(const JsonNode& node, const std::vector<std::string>& hyper);

/// Returns the tensor name of a weight, without the prefix. Each element of `names`, in order, is a pattern and a
/// replacement for the first run of dot-separated words that matches the pattern. A star of the pattern matches any one
/// word. This word replaces the corresponding star of the replacement.
std::string tensor_name(const HuggingFaceMapping& mapping, const std::string& weight);
/// Like tensor_name, but with the prefix, unless the tensor is written without it.
std::string written_name(const HuggingFaceMapping& mapping, const std::string& weight);
/// Returns the number of tensors of a weight. If the tensor name contains the word "#", there is one tensor for each
/// index of the weight's first axis. Otherwise one tensor holds the whole weight, and the result is nullopt.
std::optional<std::int64_t> tensors_of(const std::string& tensor, const Shape& weight);
/// Returns the name with `number` in place of the word "#".
std::string numbered(const std::string& tensor, std::int64_t number);
/// Returns the current name of a tensor of a file, without the prefix. Each pair of `former` replaces words as in
/// tensor_name.
std::string present_name(const HuggingFaceMapping& mapping, const std::string& tensor);

/// Returns the name with a star in place of each word that is a number.
std::string without_numbers(const std::string& tensor);

/// Returns whether `name` matches `pattern`. A star matches any number of characters other than dots: "h.*.attn.bias".
bool matches(const std::string& name, const std::string& pattern);
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

// The weights in the files of a folder in the format of the Hugging Face Hub.

/// Hyper-parameters and the texts of their overrides.
using Overrides = std::vector<std::pair<std::string, std::string>>;

bool has_weights(const std::string& folder);
/// Returns the names of the files that hold the weights, and of their index. Throws FileError.
std::vector<std::string> weight_file_names(const std::string& folder);
/// Opens the files that hold the weights. Throws FileError.
std::vector<ArrayFile> weight_files(const std::string& folder);
/// Returns whether an array of two or more axes has this dtype.
bool has_dtype(const std::vector<ArrayFile>& files, Dtype dtype);
/// The dtypes of weights that only xtape reads from a folder. Beside other blocks, Q8_0 is that of the weights whose
/// sums are too short for them.
constexpr Dtype narrow_storages[] = {Dtype::int8, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k, Dtype::q8_0};

/// Returns the tensors under their current names without the prefix. Of several tensors with the same current name,
/// returns one: the tensor that has this name in the files, or else the first. Throws FileError if another one differs,
/// unless the mapping skips its name. Adds the names of tensors that are skipped for this reason to `skipped`.
std::vector<StoredWeight> tensors_of(const std::vector<ArrayFile>& files, const HuggingFaceMapping& mapping,
                                     std::vector<std::string>& skipped);
/// Removes each stored weight that equals the weight to which it is tied. If the two differ, adds an override that
/// unties them, even if the config ties them.
void settle_ties(const HuggingFaceMapping& mapping, std::vector<StoredWeight>& stored, Overrides& overrides);
/// Replaces the names of tensors by the names of their weights. Removes tensors that the mapping skips, and adds their
/// names to `skipped`.
void name_weights(const HuggingFaceMapping& mapping, const Store& weights, std::vector<StoredWeight>& stored,
                  std::vector<std::string>& skipped);

}  // namespace xtape::model
