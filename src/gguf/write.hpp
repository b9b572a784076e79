/// Writes GGUF files.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gguf/family.hpp"
#include "gguf/file.hpp"
#include "model/hugging_face/mapping.hpp"

namespace xtape::gguf {

/// A tensor to write. `values` returns its elements as float32, in the order of the file.
struct Written {
  std::string name;
  Shape shape;
  const BlockFormat* format;
  std::function<Array()> values;
};

/// Keys and values. Integers are written as u32, or as i32 in arrays, and floats as f32.
using Metadata = std::vector<std::pair<std::string, Json>>;

/// Writes a file of version 3, which replaces `path` when it is complete. Holds one tensor in memory at a time. Throws
/// FileError if the file cannot be written, or if a tensor has numbers that its format cannot express.
void write_file(const std::string& path, const Metadata& metadata, const std::vector<Written>& tensors);

/// Returns the config of a folder with each setting of the mapping under the first of its keys, and sets `mapping` to
/// that of its definition.
Json config_of(const std::string& folder, model::HuggingFaceMapping& mapping);
/// Returns an array of a folder as float32, with its rows in the order of the file.
Array in_order(const model::StoredWeight& stored, const TensorRule& rule, const Json& config);

/// Writes the adapters of a file as a folder of PEFT. `base` is the folder of their base model, or its GGUF file.
void write_adapter_folder(const std::string& path, const std::string& base, const std::string& folder);

/// Returns the metadata of a folder's tokenizer for a model with `tokens` tokens. Throws FileError if llama.cpp has no
/// such tokenizer.
Metadata tokenizer_metadata(const std::string& folder, std::int64_t tokens);

}  // namespace xtape::gguf
