/// Reads the header of one GGUF file.
#pragma once

#include <string>

#include "gguf/file.hpp"

namespace xtape::gguf {

/// Reads metadata and descriptions of tensors. Each size is compared with the bytes that are left before anything is
/// allocated. Errors name the file, the key or tensor, and the byte.
class PartReader {
 public:
  PartReader(FileData& data, const MappedFile& part) : data_(data), part_(part), bytes_(part.bytes()) {}
  void read();

 private:
  static constexpr int deepest = 8;  ///< The depth of arrays in arrays.
  /// The description of a tensor in the file.
  struct Described {
    std::size_t tensor;
    std::uint64_t offset;
  };
  [[noreturn]] void fail(const std::string& message) const;
  template <class T>
  T number();
  std::string text(const std::string& what);
  void need(std::uint64_t count, std::uint64_t size, const std::string& what) const;
  Json value(Type type, int depth);
  Json list(int depth);
  void read_metadata(std::uint64_t count);
  Described read_tensor();
  void place_tensors(const std::vector<Described>& described);

  FileData& data_;
  const MappedFile& part_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string owner_;  // the key or tensor at which the reader is, for errors
};

}  // namespace xtape::gguf
