/// Files that contain what a folder of a model has: a GGUF file contains a config, arrays and the files of a tokenizer.
/// The library of the format implements this interface. Then "model.gguf/config.json" is a path that can be read, and
/// whatever opens a folder opens the file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/system/system.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

class FolderFile {
 public:
  virtual ~FolderFile() = default;
  virtual const std::map<std::string, std::string>& texts() const = 0;  ///< The contents of files, by their names.
  virtual const std::string& arrays_name() const = 0;                   ///< The file name of the arrays.
  virtual const std::vector<ArrayFile::Entry>& arrays() const = 0;
  /// Reads array `entry` into an array of its shape and of its dtype, or of float32 if its dtype is 16 bits wide.
  /// Throws FileError with the file and the array.
  virtual void read(std::size_t entry, Array& into) const = 0;
  /// Where the elements of an array are, if a file has them in blocks and in this order.
  struct Place {
    const MappedFile* file = nullptr;  ///< Null: the array must be read.
    std::size_t byte = 0;
  };
  virtual Place place(std::size_t entry) const = 0;
  /// Throws the errors of `read` for elements that are in a mapping of that file.
  virtual void check(std::size_t entry, const Array& elements) const = 0;
};

/// Opens a file. Throws FileError.
using FolderFileReader = std::shared_ptr<const FolderFile> (*)(const std::string& path);

/// Enables paths into files whose names end in `ending` (".gguf"), in all threads.
void set_folder_file_reader(const std::string& ending, FolderFileReader reader);

/// Returns the file at `path`, or null if no reader is set for its ending, or if nothing or a folder is there. A file
/// that has not changed since the last call is not read again. Throws FileError, also for pipes and devices.
std::shared_ptr<const FolderFile> folder_file(const std::string& path);

/// Frees the memory of the last file, unless something else has it.
void forget_folder_file();

/// Whether `path` is a folder, or a file that can be opened like one. Throws FileError.
bool opens_as_folder(const std::string& path);

/// A path into a file: the file, and the name in it. `file` is null for all other paths.
struct PathInside {
  std::shared_ptr<const FolderFile> file;
  std::string path, name;
  /// Returns the text of this name, or null if there is none.
  const std::string* text() const;
};
PathInside path_inside(const std::string& path);

}  // namespace xtape
