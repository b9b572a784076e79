/// Files read at any offset, and files that are replaced atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

/// A regular file, read at any offset by any thread. It is not memory-mapped: if another process truncates the file,
/// reading throws, where a mapping would raise a signal. The constructor throws FileError if it cannot open the file.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();
  std::uint64_t size() const { return size_; }  ///< Bytes, at the time the file was opened.
  /// Copies `count` bytes, starting at byte `offset`, to `to`. Throws FileError if the file ends before.
  void read(std::uint64_t offset, void* to, std::size_t count) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// The bytes of a regular file. Throws FileError if it cannot be read, or if the path is a directory or a pipe.
std::string read_file(const std::string& path);

/// The path that `path` leads to through symbolic links, existing or not. Throws FileError for a circle of links.
std::string link_target(std::string path);

/// A temporary file next to the file that it replaces. `commit` flushes it to the disk and renames it over the old
/// file; without a commit the destructor deletes it. At any instant `path` is either the complete old file or the
/// complete new one. If `path` is a symbolic link, the file that it leads to is replaced. If `path` is a pipe or a
/// device, it stays one: `commit` writes the bytes to it. All functions throw FileError.
class ReplacedFile {
 public:
  explicit ReplacedFile(const std::string& path);
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile();
  void write(const void* bytes, std::size_t count);
  void rewrite(const void* bytes, std::size_t count);  ///< Overwrites the beginning of what was written.
  void commit();
  bool is_open() const { return file_ >= 0; }  ///< Until the commit.

 private:
  [[noreturn]] void fail() const;
  bool is_direct() const { return beside_.empty(); }  // to a pipe or a device
  void write_out(const void* bytes, std::size_t count);

  std::string path_, target_, beside_;
  std::string held_;  // if direct: what was written so far, as it may be rewritten
  int file_ = -1;
};

}  // namespace xtape
