/// Operations on files and folders that keep them intact after a crash or on a full disk: queries, replacing, appending
/// and locking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// Returns whether a file of any kind exists at `path`. Throws FileError if the system cannot tell.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);      ///< Whether `path` is a folder; throws as path_exists does.
bool is_plain_file(const std::string& path);  ///< Whether `path` is a regular file; throws as path_exists does.
/// Returns the path of a name in a folder.
inline std::string path_in(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}
/// Returns the names in a folder, in no particular order. Throws FileError if the folder cannot be read completely.
std::vector<std::string> names_in(const std::string& folder);
/// Returns a name in the folder that is not one of `known`, or "" if there is none. Throws FileError.
std::string other_name_in(const std::string& folder, const std::vector<std::string>& known);
/// Creates the folder and its missing parents. Throws FileError.
void make_folders(const std::string& folder);
/// Creates the folder. Its parent must exist: a parent that has been deleted in the meantime is not created again. Does
/// nothing if the folder exists. Throws FileError.
void make_folder(const std::string& folder);
/// Removes the file, or the folder with its contents, at `path`. Returns the reason if this fails, or "" if nothing is
/// left there.
std::string try_to_remove(const std::string& path);
/// Like try_to_remove, but ignores errors.
void remove_if_possible(const std::string& path) noexcept;
/// Tries to rename `from` to `to`. Returns the reason if this fails, or "" if it succeeds.
std::string try_to_rename(const std::string& from, const std::string& to);
/// Waits until the names in a folder are on the disk (fsync). Throws FileError.
void flush_folder(const std::string& folder);
std::string folder_of(const std::string& path);  ///< The folder that contains the file or folder `path`.
/// Renames `from` to `to` and flushes the folder of `to`. Throws FileError.
void rename_path(const std::string& from, const std::string& to);
/// The ending of the names of folders that write_folder has not completed.
inline constexpr const char* unfinished = ".writing";
/// Returns whether this is the name of a file or folder that a crash left incomplete: NAME.writing or
/// NAME.writing-PROCESS.
bool is_unfinished(const std::string& name);
/// Creates or replaces the folder at `path` atomically. `write` fills a new folder beside it, whose name ends in
/// `unfinished`. This folder is then renamed to `path`. If `write` throws, the new folder is removed. If `path` is a
/// symbolic link, the target of the link is replaced. Throws FileError.
void write_folder(const std::string& path, const std::function<void(const std::string& beside)>& write);
/// Replaces the file at `path` atomically, as ReplacedFile does. Throws FileError.
void write_file(const std::string& path, const std::string& bytes);

/// A file to which bytes are appended. Each write is in the file completely or not at all.
class AppendedFile {
 public:
  /// Opens the file. Creates it if it is missing. Throws FileError.
  explicit AppendedFile(std::string path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();
  /// Appends `bytes`. Throws FileError if the bytes cannot be written completely, after truncating the file to its old
  /// length. Throws FileError if the file has been deleted.
  void write(const std::string& bytes);
  void flush();  ///< Waits until the file is on the disk (fsync). Throws FileError.

 private:
  [[noreturn]] void fail(const std::string& reason) const;
  std::string path_;
  int file_ = -1;
};

/// A lock on a file (flock). One process at a time can hold it. The lock is released when the process that holds the
/// lock ends, in whatever way. The file contains the name of the holder.
class FileLock {
 public:
  /// Acquires the lock on the file `path`. Creates the file if it is missing. `what` names the locked object in errors.
  /// Throws FileError with the name of the holder if another process holds the lock.
  FileLock(std::string path, std::string what);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();
  /// Throws FileError if the locked file has been moved or deleted.
  void check() const;

 private:
  void acquire();
  bool is_in_place() const;
  std::string path_, what_;
  int file_ = -1;
};

}  // namespace xtape
