/// What a definition says of folders as the Hugging Face Hub has them: the words of their config.json for its
/// hyper-parameters, and the names of their tensors for its weights.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json_text.hpp"

namespace xtape::model {

struct HuggingFaceMapping {
  /// A hyper-parameter and the keys of config.json that hold it: the first that is there is read. A dot in a key leads
  /// into an object.
  struct Setting {
    std::string hyper;
    std::vector<std::string> keys;
    /// Where the two have different words for a value: theirs, then ours. Several of theirs may be one of ours, of
    /// which the first is written. Empty: values are the same.
    std::vector<std::pair<std::string, std::string>> values;
    /// What a config means that has none of the keys, in its words; null: the definition's own default. Nothing: a
    /// config has one of the keys.
    std::optional<Json> missing;
  };
  /// A weight that a file need not hold where it is the same as another, and the hyper-parameter that says so.
  struct Tie {
    std::string weight, other, hyper;
  };
  Json json;  ///< The entry as it is written.
  std::string model_type, architecture;
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, Json>> fixed;   ///< Hyper-parameters for which such folders know this value alone.
  std::vector<std::pair<std::string, Json>> config;  ///< Keys of config.json that cannot have another value.
  std::vector<std::string> ignored;                  ///< Patterns of keys that say nothing of what is computed.
  std::string prefix;                                ///< Of tensors' names; read with and without, written with.
  std::vector<std::pair<std::string, std::string>>
      names;                                ///< Of modules here and there: tensor_name says how they apply.
  std::vector<std::string> without_prefix;  ///< Patterns of weights that never have it.
  std::vector<std::string> skip;            ///< Patterns of tensors, without the prefix, that are no weights.
  std::vector<Tie> ties;
};

/// Reads the entry "hugging_face" of a definition whose hyper-parameters are `hyper`. Throws DefinitionError.
HuggingFaceMapping read_hugging_face(const JsonNode& node, const std::vector<std::string>& hyper);

/// What a weight is called there, without the prefix. Of every entry in `names`, in turn, where a run of the name's
/// words (what stands between dots) is the first, the second takes its place; a star stands for the same in both.
std::string tensor_name(const HuggingFaceMapping& mapping, const std::string& weight);

/// Whether `name` is of the form `pattern`, where a star stands for anything without a dot: "h.*.attn.bias".
bool matches(const std::string& name, const std::string& pattern);
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace xtape::model
