/// The contents of a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/blocks/block_formats.hpp"
#include "base/json/json_text.hpp"
#include "base/system/system.hpp"
#include "xtape/gguf.hpp"

namespace xtape::gguf {

inline constexpr std::uint32_t magic = 0x46554747;  // "GGUF"
inline constexpr std::int64_t usual_alignment = 32;
inline constexpr const char *alignment_key = "general.alignment", *architecture_key = "general.architecture";

/// The types of metadata, by their numbers in files.
enum class Type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, flag, text, array, u64, i64, f64 };

struct FileData {
  std::string path;
  std::uint32_t version = 0;
  Json metadata = Json::object();
  std::vector<std::string> keys;
  std::vector<GgufFile::Tensor> tensors;
  std::vector<const BlockFormat*> formats;               ///< Of the tensors.
  std::vector<std::span<const std::byte>> elements;      ///< Of the tensors.
  std::vector<const MappedFile*> places;                 ///< The files that have the tensors.
  std::unordered_map<std::string, std::size_t> index;    ///< Of the tensors by name.
  std::vector<std::unique_ptr<const MappedFile>> parts;  ///< The file, or the files of a split model.

  /// Returns the value of a key, or null.
  const Json* find(const std::string& key) const;
  /// Returns the tensor's index, or nullptr.
  const std::size_t* find_tensor(const std::string& name) const;
  /// Throws FileError "'model.gguf': message".
  [[noreturn]] void fail(const std::string& message) const;

  bool is_adapter() const;  ///< Whether the file has adapters of a model, and no model.
  // Metadata that must have these types. They throw FileError if the key is missing or its value has another type.
  const std::string& text(const std::string& key) const;
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t greatest) const;
};

std::shared_ptr<const FileData> open_file(const std::string& path);

/// Decodes `blocks` blocks from block `first` of a tensor. Returns the last block of a quantised format that has a
/// number which is not finite, or -1.
std::int64_t decode(const FileData& file, std::size_t tensor, std::int64_t first, std::int64_t blocks, float* to);
/// Returns the last of these blocks that has a scale which is not finite, or -1, also for dtypes without blocks.
std::int64_t find_damaged(Dtype dtype, const std::byte* from, std::int64_t blocks);
/// Throws FileError that the scale of this block is not finite.
[[noreturn]] void fail_block(const FileData& file, std::size_t tensor, std::int64_t block);

/// Returns the JSON text of a value for an error, at most a hundred characters.
std::string shown(const Json& value);

/// Converts a float32 to the double with the shortest decimal that rounds to it: 1e-6F becomes 1e-6.
double shortest_double(float value);

}  // namespace xtape::gguf
