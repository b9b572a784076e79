/// Files that can be read at any offset, and files that are replaced atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

/// A regular file. Any thread can read it at any offset. The file is not memory-mapped. If another process truncates
/// it, reading throws, while a mapping would raise a signal. The constructor throws FileError if it cannot open the
/// file.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();
  std::uint64_t size() const { return size_; }  ///< The size in bytes when the file was opened.
  /// Copies `count` bytes, starting at byte `offset`, to `to`. Throws FileError if the file ends earlier.
  void read(std::uint64_t offset, void* to, std::size_t count) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// Returns the bytes of a regular file. Throws FileError if the file cannot be read, or if the path is a directory or a
/// pipe.
std::string read_file(const std::string& path);

/// Returns the target of `path` after following symbolic links, whether or not the target exists. Throws FileError for
/// a cycle of links.
std::string link_target(std::string path);

/// A temporary file next to the file that it replaces. `commit` flushes it to the disk and renames it over the old
/// file. Without a commit, the destructor deletes it. At any instant `path` is either the complete old file or the
/// complete new one. If `path` is a symbolic link, the target of the link is replaced. If `path` is a pipe or a device,
/// `commit` writes the bytes to it instead. All functions throw FileError.
class ReplacedFile {
 public:
  explicit ReplacedFile(const std::string& path);
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile();
  void write(const void* bytes, std::size_t count);
  void rewrite(const void* bytes, std::size_t count);  ///< Overwrites the beginning of the written bytes.
  void commit();
  bool is_open() const { return file_ >= 0; }  ///< True until the commit.

 private:
  [[noreturn]] void fail() const;
  bool is_direct() const { return beside_.empty(); }  // whether the target is a pipe or a device
  void write_out(const void* bytes, std::size_t count);

  std::string path_, target_, beside_;
  std::string held_;  // if direct: the bytes written so far, because they may be rewritten
  int file_ = -1;
};

}  // namespace xtape
