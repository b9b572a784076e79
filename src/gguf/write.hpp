/// Writes GGUF files.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.hpp"

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

/// Returns the metadata of a folder's tokenizer for a model with `tokens` tokens. Throws FileError if llama.cpp has no
/// such tokenizer.
Metadata tokenizer_metadata(const std::string& folder, std::int64_t tokens);

}  // namespace xtape::gguf
