/// A definition's mapping to folders in the format of the Hugging Face Hub: from keys of config.json to
/// hyper-parameters, and from weights to names of tensors.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json_text.hpp"
#include "xtape/array.hpp"

namespace xtape::model {

struct HuggingFaceMapping {
  /// A hyper-parameter and the keys of config.json that may hold it: the first key that has a value is read. Dots
  /// separate the keys of nested objects.
  struct Setting {
    std::string hyper;
    std::vector<std::string> keys;
    /// Pairs of a value in config.json and the hyper-parameter's value for it, as texts (see word_of). Several config
    /// values may have the same hyper-parameter value; the first one is written. Without any but null, all other values
    /// are those of the hyper-parameter.
    std::vector<std::pair<std::string, std::string>> values;
    /// The config value that applies if no key has one. null, unless `values` have it: the definition's default.
    /// nullopt if one of the keys is required.
    std::optional<Json> missing;
    /// The value is the number of entries of the config's object, such as the names of labels.
    bool count = false;

    bool maps_null() const;    ///< Whether null has an entry in `values`: otherwise it is no value.
    bool lists_words() const;  ///< Whether `values` have more than null: then no other values are allowed.
  };
  /// A weight that may be tied to another one, in which case files may lack it, and the flag that ties the two.
  struct Tie {
    std::string weight, other, hyper;
  };
  /// How folders of PEFT hold the low-rank adapters of a definition.
  struct Adapter {
    /// Hyper-parameters by the keys of adapter_config.json: "r" and "lora_alpha", and if the definition has them
    /// "lora_dropout" and "target_modules".
    std::map<std::string, std::string> hyper;
    std::string a, b;  ///< The last words of the weights' names; A is [rank, in], B [out, rank].
    std::vector<std::pair<std::string, Json>> config;  ///< Further keys, which are written.

    /// Whether adapted weights are [in, out] in folders.
    bool transposed() const;
  };
  Json json;  ///< The entry of the definition.
  std::string model_type;
  /// Architectures and the definitions that open them; an empty name is that of any definition.
  std::vector<std::pair<std::string, std::string>> architectures;
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, Json>> fixed;   ///< Hyper-parameters that must have this value in such folders.
  std::vector<std::pair<std::string, Json>> config;  ///< Keys of config.json that must have this value if present.
  std::vector<std::string> ignored;                  ///< Patterns of keys that do not affect the computation.
  std::string prefix;                                ///< Begins names of tensors; optional in reading, always written.
  std::vector<std::pair<std::string, std::string>>
      names;                                ///< Names of modules here and in the folder, see tensor_name.
  std::vector<std::string> without_prefix;  ///< Patterns of tensors that are written without the prefix.
  std::vector<std::string> skip;  ///< Patterns of tensors, without the prefix, that may be other than weights.
  std::vector<std::pair<std::string, std::string>> former;  ///< Parts of names in old files, and what they are now.
  std::vector<Tie> ties;
  std::optional<Adapter> adapter;

  /// The architecture that the definition of this name opens.
  const std::string& architecture(const std::string& definition) const;
};

/// The mapping `node` over the one that it extends: of entries of one name its own count, and lists are added.
JsonNode extended_mapping(const JsonNode& base, const JsonNode& node);

/// Reads the entry "hugging_face" of a definition whose hyper-parameters are `hyper`. Throws DefinitionError.
HuggingFaceMapping read_hugging_face(const JsonNode& node, const std::vector<std::string>& hyper);

/// The tensor name of a weight, without the prefix. Each pair of `names`, in order, replaces the first run of
/// dot-separated words that matches its first name by its second name. A star matches any one word, which replaces the
/// corresponding star of the second name.
std::string tensor_name(const HuggingFaceMapping& mapping, const std::string& weight);
/// The same with the prefix, unless the tensor is written without it.
std::string written_name(const HuggingFaceMapping& mapping, const std::string& weight);
/// The number of tensors of a weight: with the word "#" in their name, one for each index of the weight's first axis.
/// nullopt: one tensor has the whole weight.
std::optional<std::int64_t> tensors_of(const std::string& tensor, const Shape& weight);
/// The name with `number` in place of the word "#".
std::string numbered(const std::string& tensor, std::int64_t number);
/// The present name of a tensor of a file, without the prefix: each pair of `former` replaces words as above.
std::string present_name(const HuggingFaceMapping& mapping, const std::string& tensor);

/// Whether `name` matches `pattern`. A star matches any number of characters other than dots: "h.*.attn.bias".
bool matches(const std::string& name, const std::string& pattern);
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace xtape::model
