/// Folders and files that outlive crashes and full disks: what is looked for, replaced, appended to, and locked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// Whether there is anything at `path`. Throws FileError where that cannot be found out.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);      ///< The same of a folder …
bool is_plain_file(const std::string& path);  ///< … and of a file.
/// The names in a folder, in no order. Throws FileError where it cannot be read whole.
std::vector<std::string> names_in(const std::string& folder);
/// Makes the folder, and those above it that are missing. Throws FileError.
void make_folders(const std::string& folder);
/// The same, where those above it are there: a folder that was deleted meanwhile is not made again.
void make_folder(const std::string& folder);
/// Removes the file or folder at `path` as far as it can be removed.
void remove_if_possible(const std::string& path) noexcept;
/// Waits until the names in a folder are on the disk. Throws FileError.
void flush_folder(const std::string& folder);
std::string folder_of(const std::string& path);  ///< In which a file or folder stands.
/// Renames, and flushes the folder that holds the new name. Throws FileError.
void rename_path(const std::string& from, const std::string& to);
/// Writes a file whole: beside `path`, flushed, then renamed to it. Throws FileError.
void write_file(const std::string& path, const std::string& bytes);

/// A file that grows. What is appended is there whole or not at all.
class AppendedFile {
 public:
  /// Opens the file, or makes it. Throws FileError.
  explicit AppendedFile(std::string path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();
  /// Throws FileError where not all could be written, and takes the part back; or where the file has been deleted.
  void write(const std::string& bytes);
  void flush();  ///< Waits until all of it is on the disk. Throws FileError.

 private:
  [[noreturn]] void fail(const std::string& reason) const;
  std::string path_;
  int file_ = -1;
};

/// A lock on a file, which one process can hold at a time, and which ends with its process however that ends. The file
/// says who holds it.
class FileLock {
 public:
  /// Makes the file where it is missing. Throws FileError, which says who it is, where somebody holds the lock of
  /// `what`.
  FileLock(std::string path, std::string what);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();
  /// Throws FileError where the locked file has been moved or deleted.
  void check() const;

 private:
  void acquire();
  bool is_in_place() const;
  std::string path_, what_;
  int file_ = -1;
};

}  // namespace xtape
