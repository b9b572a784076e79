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
  /// A hyper-parameter and the keys of config.json that hold it: the first that is there is read, keys[0] is written.
  struct Setting {
    std::string hyper;
    std::vector<std::string> keys;
    /// Where the two have different words for a value: theirs, then ours. Several of theirs may be one of ours, of
    /// which the first is written. Empty: values are the same.
    std::vector<std::pair<std::string, std::string>> values;
  };
  /// A weight that a file need not hold where it is the same as another, and the hyper-parameter that says so.
  struct Tie {
    std::string weight, other, hyper;
  };
  std::string model_type, architecture;
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, Json>> fixed;   ///< Hyper-parameters for which such folders know this value alone.
  std::vector<std::pair<std::string, Json>> config;  ///< Keys of config.json that cannot have another value.
  std::string prefix;                                ///< Of tensors' names; read with and without, written with.
  std::vector<std::string> without_prefix;           ///< Patterns of weights that never have it.
  std::vector<std::string> skip;                     ///< Patterns of tensors, without the prefix, that are no weights.
  std::vector<Tie> ties;
};

/// Reads the entry "hugging_face" of a definition whose hyper-parameters are `hyper`. Throws DefinitionError.
HuggingFaceMapping read_hugging_face(const JsonNode& node, const std::vector<std::string>& hyper);

/// Whether `name` is of the form `pattern`, where a star stands for anything without a dot: "h.*.attn.bias".
bool matches(const std::string& name, const std::string& pattern);
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace xtape::model
