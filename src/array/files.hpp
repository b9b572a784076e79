/// Files read from any place, and files that are replaced whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

/// A plain file, read from any place and by any thread. Nothing of it is mapped: a file that another process cuts off
/// gives an error, where a mapping would give a signal. Throws FileError where it cannot be opened.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();
  std::uint64_t size() const { return size_; }  ///< When it was opened.
  /// Copies `count` bytes from byte `offset` on to `to`. Throws FileError where they are not there.
  void read(std::uint64_t offset, void* to, std::size_t count) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
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
