/// Folders of PEFT, which have low-rank adapters of a model and not its other weights.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hugging_face/mapping.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

inline constexpr const char* adapter_config_file = "adapter_config.json";
inline constexpr const char* adapter_weights_file = "adapter_model.safetensors";
inline constexpr const char* adapter_prefix = "base_model.model.";                   ///< Begins names of tensors,
inline constexpr const char *adapter_a = ".lora_A.weight", *adapter_b = ".lora_B.weight";  ///< and these end them.

/// A name without its last word, and this word: "h.0.attn.weight" is "h.0.attn" and "weight".
std::pair<std::string, std::string> cut_last(const std::string& name);

/// The names of the weights of `model` that are adapters. Throws DefinitionError if its definition has no mapping for
/// them.
std::vector<std::string> adapter_weights(const Model& model);

/// The fewest words at the ends of the names `chosen` that no other name in `all` ends with, as target_modules of PEFT.
std::vector<std::string> shortest_endings(const std::set<std::string>& chosen, const std::set<std::string>& all);

}  // namespace xtape::model
