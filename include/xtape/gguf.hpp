/// Reads and writes GGUF files, the format of llama.cpp. The library xtape-gguf contains these functions. It needs
/// xtape. docs/how_to/gguf.md lists the families of models and the formats of weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

namespace gguf {
struct FileData;
}

/// Lets everything that opens a folder of the Hugging Face Hub open a GGUF file: open_hugging_face, load_tokenizer,
/// recipes, commands. Paths of such files end in ".gguf". "model.gguf/config.json" is then a path that can be read.
/// Weights in blocks of a dtype of Array stay in the mapped file. A file of llama.cpp with adapters opens as adapters.
void read_gguf_files();

/// An open GGUF file, or the files into which it is split. The elements of tensors are mapped into memory, so nobody
/// may shorten the file while it is open. Copies share the mapping. Const functions are safe in several threads at
/// once.
class GgufFile {
 public:
  /// Opens version 2 or 3. NAME-00001-of-00003.gguf stands for all three files. Throws FileError, with the file, the
  /// key or tensor and what would be right, if a file cannot be read or is damaged: the sizes of all texts and arrays,
  /// and for each tensor its format, shape, alignment and place are checked before anything is allocated.
  explicit GgufFile(const std::string& path);

  struct Tensor {
    std::string name;
    std::string format;  ///< "F32", "Q4_K" …
    Shape shape;         ///< With the axis whose neighbours are adjacent last, in reverse of the order in the file.
  };
  const std::string& path() const;
  std::uint32_t version() const;
  const std::vector<std::string>& keys() const;  ///< The keys of the metadata, in the order of the file.
  bool has(const std::string& key) const;
  /// Returns the value of a key as JSON text. A float32 is the shortest decimal that rounds to it. Throws Error if
  /// there is no such key.
  std::string metadata(const std::string& key) const;
  const std::vector<Tensor>& tensors() const;  ///< In the order of the file or files.
  // These functions throw Error if there is no such tensor.
  /// Returns the elements as float32. Throws FileError if the scale of a block is not finite.
  Array read(std::size_t tensor) const;
  std::span<const std::byte> bytes(std::size_t tensor) const;  ///< The elements as they are in the file.

 private:
  std::shared_ptr<const gguf::FileData> data_;
};

/// Returns the formats in which weights can be written: "F32", "F16", "Q4_0" …, "Q4_K", and the mixtures "Q4_K_M" and
/// "Q5_K_M", which give some matrices more bits.
std::vector<std::string> gguf_formats();

/// Writes a folder of the Hugging Face Hub, or another GGUF file, as a GGUF file for llama.cpp, with its tokenizer.
/// Matrices get `format`, one of gguf_formats(). As in llama.cpp, vectors stay F32, the matrix of the outputs gets Q6_K
/// if `format` has fewer bits, and a matrix whose rows are no whole blocks gets a format with smaller blocks or F16.
/// The file is read back before it replaces `path`: it must have the computation of the folder. Throws Error if there
/// is no such format, DefinitionError if GGUF files have no such models, and FileError if a file cannot be read or
/// written, if a number is beyond the range of the format, or if llama.cpp has no such tokenizer.
void convert_to_gguf(const std::string& folder, const std::string& path, const std::string& format = "F32");

/// Writes a folder of PEFT, such as save_adapter writes, as a GGUF file of adapters for llama.cpp. `base` is the folder
/// of the base model, of which only the config is read, or its GGUF file. Throws DefinitionError or FileError if GGUF
/// files have no such adapters.
void convert_adapter_to_gguf(const std::string& folder, const std::string& base, const std::string& path);

/// Writes a model as a GGUF file: save_hugging_face to a temporary folder beside `path`, then convert_to_gguf. `like`
/// is the folder or file whose tokenizer the file gets, or "". Errors are those of both functions.
void save_gguf(const Model& model, const std::string& path, const std::string& format = "F32",
               const std::string& like = "");

}  // namespace xtape
