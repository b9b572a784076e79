/// Files read without copying, and files that are replaced whole or not at all.
#pragma once

#include <cstddef>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

/// A file's bytes in memory, mapped for reading. Throws FileError where it cannot be opened.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A plain file's bytes. Throws FileError where it cannot be read, and where the path is a directory or a pipe.
std::string read_file(const std::string& path);

/// A file written beside the one it is to replace. `commit` flushes it to the disk and renames it over the other;
/// without a commit it vanishes. At any instant either the old file or the new one is there, whole. Throws FileError.
class ReplacedFile {
 public:
  explicit ReplacedFile(const std::string& path);
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile();
  void write(const void* bytes, std::size_t count);
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::string path_, beside_;
  int file_ = -1;
};

}  // namespace xtape
