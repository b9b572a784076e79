/// Reading and writing arrays in safetensors files (an 8-byte length, a JSON header, then the elements).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/named.hpp"
#include "xtape/owner.hpp"

namespace xtape {

/// An open safetensors file, whose arrays are read one at a time. The whole header is checked before anything is
/// allocated: names, dtypes, shapes, and that each array's bytes lie inside the file, fit its shape and overlap no
/// other's. If the header has checksums, as save_arrays writes them, reading an array compares its checksum.
///
/// F32, F64, BF16, F16, I32, I64, I8 and BOOL keep their dtype; U8, I16 and U16 become int32, U32 becomes int64.
class ArrayFile {
 public:
  /// Throws FileError, which says what is wrong with the file.
  explicit ArrayFile(const std::string& path);

  struct Entry {
    std::string name;
    Dtype dtype = Dtype::float32;  ///< After conversion.
    Shape shape;
  };
  const std::string& path() const;
  const std::vector<Entry>& entries() const;  ///< In the order of the header.
  /// The texts that save_arrays was given, by their keys. Values that are not texts are ignored.
  const Named<std::string>& metadata() const;
  // These throw Error if there is no such entry.
  Array read(std::size_t entry) const;        ///< The array of entries()[entry], in new memory.
  /// The same into `into`; ShapeError unless it has the array's dtype and shape. It may be float32 or float64 for an
  /// array of halves. Both throw FileError, which names file and array, if the checksum is wrong or the file has become
  /// shorter; `into` then has unspecified elements. Uses all threads.
  void read(std::size_t entry, Array& into) const;
  /// Compares the array with its checksum and throws as `read` does. Does nothing if the file has no checksums.
  void check(std::size_t entry) const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// All arrays of a safetensors file. Throws as ArrayFile does.
Store load_arrays(const std::string& path);

/// Writes a safetensors file whose elements are not all in memory at once. The file replaces `path` as for save_arrays.
/// Without a commit, `path` stays as it was.
class ArrayWriter {
 public:
  /// Throws FileError, as all functions of this class; also if a name or a key of the metadata is there twice.
  ArrayWriter(const std::string& path, const std::vector<ArrayFile::Entry>& entries,
              const std::vector<std::pair<std::string, std::string>>& metadata = {});
  /// Writes all elements of the next array. Also throws ShapeError or DtypeError if it does not fit its entry, Error if
  /// it is empty.
  void write(const ArrayView& values);
  /// Completes the file. Throws Error unless every array has been written, or if it is complete already.
  void commit();

 private:
  struct Data;
  Owner<Data> data_;
};

/// Writes the arrays of `store` to a new file next to `path`, flushes it to disk and renames it to `path`, so that a
/// crash leaves either the old file or the new one. The header gets `metadata` and a checksum of each array:
/// "xxh3:NAME", 16 hexadecimal digits, the XXH3-64 of the XXH3-64s (8 bytes each, little-endian) of the array's pieces
/// of 1 MiB. Throws FileError as ArrayWriter does, Error if an array is empty.
void save_arrays(const std::string& path, const Store& store,
                 const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace xtape
