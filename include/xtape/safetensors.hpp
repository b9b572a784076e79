/// Reads and writes arrays in safetensors files (an 8-byte length, a JSON header, then the elements).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/named.hpp"
#include "xtape/owner.hpp"

namespace xtape {

/// An open safetensors file. Its arrays are read one at a time. Opening checks the complete header before it allocates
/// memory: names, dtypes, shapes, and that each array's bytes lie inside the file, fit its shape and do not overlap
/// those of other arrays. If the header has the checksums of save_arrays, reading an array compares its checksum.
///
/// F32, F64, BF16, F16, I32, I64, I8 and BOOL keep their dtype. U8, I16 and U16 become int32. U32 becomes int64.
class ArrayFile {
 public:
  /// Throws FileError with the cause if the file cannot be read or is damaged.
  explicit ArrayFile(const std::string& path);

  struct Entry {
    std::string name;
    Dtype dtype = Dtype::float32;  ///< The dtype after conversion.
    Shape shape;
    /// Of an array in blocks: which axis of the weight each axis is (Model::orders), if the file says it.
    std::vector<std::int64_t> order = {};
  };
  const std::string& path() const;
  const std::vector<Entry>& entries() const;  ///< In the order of the header.
  /// The texts that save_arrays stored, by their keys. Values that are not texts are ignored.
  const Named<std::string>& metadata() const;
  // These functions throw Error if there is no such entry.
  Array read(std::size_t entry) const;  ///< Returns the array of entries()[entry] in new memory.
  /// Reads the array into `into`. Throws ShapeError if the dtype or shape of `into` differs. For a bfloat16 or float16
  /// array, `into` may also be float32 or float64. Both functions throw FileError with the file and the array if the
  /// checksum is wrong or the file has become shorter. The elements of `into` are then unspecified. Uses all threads.
  void read(std::size_t entry, Array& into) const;
  /// Returns the array in a mapping of the file if the file has the elements in blocks and in this order, as GGUF files
  /// do, and an empty array otherwise. Each ArrayFile has a mapping of its own. Whoever writes to such an array changes
  /// private copies of its pages, neither the file nor what others have opened. `read` into a mapped array only checks
  /// it. Throws FileError if the file cannot be mapped, or has become shorter.
  Array mapped(std::size_t entry) const;
  /// Compares the array with its checksum, and throws the same errors as `read`. Does nothing if the file has no
  /// checksums.
  void check(std::size_t entry) const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// Reads all arrays of a safetensors file. Errors are those of ArrayFile.
Store load_arrays(const std::string& path);

/// Writes a safetensors file without holding all elements in memory. The file replaces `path` as in save_arrays.
/// Without `commit`, `path` stays unchanged.
class ArrayWriter {
 public:
  /// Throws FileError if a name or a key of the metadata occurs twice. All functions of this class throw FileError if
  /// the file cannot be written.
  ArrayWriter(const std::string& path, const std::vector<ArrayFile::Entry>& entries,
              const std::vector<std::pair<std::string, std::string>>& metadata = {});
  /// Writes all elements of the next array. Throws ShapeError or DtypeError if the array does not fit its entry, Error
  /// if it is empty.
  void write(const ArrayView& values);
  /// Completes the file. Throws Error if an array has not been written, or if the file is already complete.
  void commit();

 private:
  struct Data;
  Owner<Data> data_;
};

/// Writes the arrays of `store` to a new file next to `path`, flushes it to disk and renames it to `path`. A crash
/// therefore leaves either the old file or the new file. The header contains `metadata` and a checksum of each array,
/// "xxh3:NAME" with 16 hexadecimal digits. The checksum is the XXH3-64 of a list of XXH3-64 hashes (8 bytes each,
/// little-endian), one for each MiB of the array. Throws Error if an array is empty. Errors of ArrayWriter propagate.
void save_arrays(const std::string& path, const Store& store,
                 const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace xtape
