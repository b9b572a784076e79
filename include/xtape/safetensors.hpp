/// Arrays in files: the safetensors format (an 8-byte length, a JSON header, then the elements).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// A safetensors file whose arrays are read one at a time. The file is mapped, and its header is checked whole (names,
/// dtypes, shapes, that each array's bytes lie inside the file, fit its shape, and overlap no other's) before anything
/// is allocated. F32, F64, I32, I64 and BOOL keep their dtype; F16 and BF16 become float32, exactly; U8, I8, I16, U16
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
  /// The same, straight into `into`. Throws ShapeError unless that has its dtype and shape.
  void read(std::size_t entry, Array& into) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// Every array of a safetensors file. Throws as ArrayFile does.
Store load_arrays(const std::string& path);

/// Writes the arrays of `store` under their names: beside the file, flushed to the disk, then renamed over it, so that
/// a crash leaves either the old file or the new one. `metadata` is put into the header. Throws FileError.
void save_arrays(const std::string& path, const Store& store,
                 const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace xtape
