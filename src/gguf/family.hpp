/// The families of models: how metadata and tensors of a GGUF file are the config and the tensors of a folder of the
/// Hugging Face Hub. models/gguf has a JSON file for each family; docs/how_to/gguf.md describes its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "gguf/file.hpp"

namespace xtape::gguf {

inline constexpr const char* rope = "rope_parameters.";  ///< The beginning of keys of configs.

/// How a tensor of a file is one of a folder.
struct TensorRule {
  std::string theirs, ours;  ///< Names without their last word: "blk.*.attn_q", "layers.*.self_attn.q_proj".
  /// The order of the rows, as "heads 2 d -> heads d 2": the axes into which rows are divided in the folder, and their
  /// order in the file. Words are sizes, keys of the config, and at most one other word. Empty: the same order.
  std::string rows;
  double plus = 0;          ///< What the file adds to the numbers.
  bool transposed = false;  ///< Whether the folder has [in, out] and the file [out, in].
};

/// A rule, applied to a name.
struct Renamed {
  std::string name;
  const TensorRule* rule = nullptr;  ///< Null if no rule applies.
  std::int64_t part = -1;            ///< The number that stands for "#", or -1.
};

class Family {
 public:
  /// Returns the family of a file. Throws FileError if no family fits, and DefinitionError if a file in models/gguf is
  /// wrong.
  static Family of_file(const FileData& file);
  /// Returns the family with this model_type. Throws DefinitionError if there is none.
  static Family of_model_type(const std::string& type);

  const std::string& architecture() const { return architecture_; }
  /// Returns the config.json of the folder. Throws FileError if a key is missing or has a value that the family does
  /// not support.
  Json config(const FileData& file) const;
  /// Returns the metadata for a config that has each setting under the first of its keys: pairs of keys and values,
  /// with numbers that are floats as JSON floats. Throws DefinitionError if a file cannot express the config.
  std::vector<std::pair<std::string, Json>> metadata(const Json& config) const;

  /// Returns the name of the tensor in a folder, without the prefix. With the word "#", the folder has a tensor for
  /// each index of the first axis.
  Renamed in_folder(const std::string& tensor) const { return renamed(tensor, true); }
  /// Returns the name of a folder's tensor, without the prefix, in the file.
  Renamed in_file(const std::string& tensor) const { return renamed(tensor, false); }
  /// Whether the tensor has no weight of its own, because it follows from the config.
  bool is_derived(const std::string& tensor) const { return tensor == factors_; }
  /// The tensor with the factors of rotary frequencies, or "".
  const std::string& factors() const { return factors_; }
  /// Returns these factors for a config with Llama 3's scaling, or an empty list for others.
  std::vector<float> rotary_factors(const Json& config) const;

 private:
  explicit Family(JsonNode node);
  Renamed renamed(const std::string& tensor, bool in_folder) const;
  std::optional<Json> value_of(const FileData& file, const JsonNode& source, std::string& missing) const;
  std::optional<Json> formula(const FileData& file, const std::string& text, std::string& missing) const;
  void read_factors(const FileData& file, Json& config) const;
  void check_sizes(const FileData& file) const;
  void add_unknown_keys(const FileData& file, Json& config) const;
  std::string key_of(const std::string& word) const { return architecture_ + "." + word; }

  JsonNode node_;
  std::string architecture_, model_type_, factors_;
  std::vector<TensorRule> rules_;
};

/// Returns the row of the folder's tensor for each row of the file's tensor. Throws FileError naming `where` if the
/// rows cannot be divided so.
std::vector<std::int64_t> row_order(const std::string& rows, std::int64_t count, const Json& config,
                                    const std::string& where);

}  // namespace xtape::gguf
