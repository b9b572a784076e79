/// Arrays in files: the safetensors format (an 8-byte length, a JSON header, then the elements).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// A safetensors file whose arrays are read one at a time. The file stays open, and its header is checked whole (names,
/// dtypes, shapes, that each array's bytes lie inside the file, fit its shape, and overlap no other's) before anything
/// is allocated. Where the header has checksums, as save_arrays writes them, each array that is read is compared with
/// its own. F32, F64, I32, I64 and BOOL keep their dtype; F16 and BF16 become float32, exactly; U8, I8, I16, U16
/// become int32, U32 int64.
class ArrayFile {
 public:
  /// Throws FileError, naming the file and what is wrong with it.
  explicit ArrayFile(const std::string& path);
  ArrayFile(ArrayFile&&) noexcept;
  ArrayFile& operator=(ArrayFile&&) noexcept;
  ~ArrayFile();

  struct Entry {
    std::string name;
    Dtype dtype = Dtype::float32;  ///< What `read` gives.
    Shape shape;
  };
  const std::string& path() const;
  const std::vector<Entry>& entries() const;  ///< In the order of the header.
  Array read(std::size_t entry) const;        ///< The array of entries()[entry], in memory of its own.
  /// The same, straight into `into`. Throws ShapeError unless that has its dtype and shape. Both throw FileError, naming
  /// file and array, where the array does not have its checksum or the file has become shorter; then `into` holds what
  /// has been read.
  void read(std::size_t entry, Array& into) const;
  /// Compares the array with its checksum and throws as `read` does; does nothing where the file has no checksums.
  void check(std::size_t entry) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// Every array of a safetensors file. Throws as ArrayFile does.
Store load_arrays(const std::string& path);

/// Writes the arrays of `store` under their names: beside the file, flushed to the disk, then renamed over it, so that
/// a crash leaves either the old file or the new one. `metadata` is put into the header, and so is a checksum of every
/// array: "xxh3:NAME", 16 hexadecimal digits, the XXH3-64 of the XXH3-64s (8 bytes each, the lowest first) of the
/// array's pieces of 1 MiB. Throws FileError.
void save_arrays(const std::string& path, const Store& store,
                 const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace xtape
