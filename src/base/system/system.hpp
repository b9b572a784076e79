/// What other layers need of the operating system besides base/files, base/threads and the limits in base/memory. Only
/// these rooms and this one include headers of the system (tests/layers.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

// Memory.

std::size_t page_size();  ///< In bytes.
/// Maps fresh pages, which are zero and take no memory until they are touched. Returns null if the system refuses.
std::byte* map_memory(std::size_t bytes);
/// Reserves address space that cannot be read or written before make_usable. Returns null if the system refuses.
std::byte* reserve_memory(std::size_t bytes);
/// Makes the first `bytes` bytes of reserved memory usable, as those of map_memory, and prefers huge pages for them.
/// Returns whether the system allows it.
bool make_usable(std::byte* begin, std::size_t bytes);
/// Asks for huge pages where whole ones fit. One for the remainder would take more memory than is wanted.
void prefer_huge_pages(std::byte* begin, std::size_t bytes);
/// Gives the memory of these pages back until they are touched again, when they are zero.
void forget_memory(std::byte* begin, std::size_t bytes);
void unmap_memory(std::byte* begin, std::size_t bytes);  ///< Ends the mapping or the reservation of these pages.

/// Returns the resident memory of this process in bytes: code, data and all pages that it has touched.
std::size_t resident_bytes();
/// Returns how many of the `bytes` bytes at `begin` are resident.
std::size_t resident_bytes(const void* begin, std::size_t bytes);
/// Returns the peak of the resident memory of this process, in bytes.
std::size_t peak_resident_bytes();
/// Returns freed memory to the system, so that it is no longer resident.
void return_freed_memory();

// Files.

/// A regular file in memory, to be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  ///< Throws FileError if the file cannot be mapped.
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_), size_}; }
  /// Maps the file once more, for one who writes: pages that are written to become the memory's own. The file and all
  /// other mappings of it stay as they are. Throws FileError, also if the file has become shorter.
  std::shared_ptr<std::byte> writable() const;

 private:
  [[noreturn]] void fail(const std::string& why) const;
  std::size_t size_now() const;
  void* mapped(int access) const;
  std::string path_;
  int file_;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// A file, pipe or device that is read from its beginning to its end.
class InputFile {
 public:
  InputFile() = default;                        ///< The standard input.
  explicit InputFile(const std::string& path);  ///< Throws FileError if the file cannot be opened.
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();
  /// Waits for bytes, and reads at most `most`. Returns their number, 0 at the end. Throws FileError.
  std::size_t read(char* to, std::size_t most);
  /// Returns the first bytes of a regular file, at most `most`, which `read` reads again.
  std::string first(std::size_t most) const;
  /// Returns whether input, or its end, is available within this time.
  bool ready_within(int milliseconds) const;

 private:
  std::string path_ = "the standard input";
  int file_ = 0;
};

/// What is at a path.
struct FileState {
  enum Kind { regular, folder, pipe, socket, device } kind;
  std::size_t bytes;
  std::string changed;  ///< The time of the last modification: seconds, a point, and nanoseconds.
};
/// Returns nothing if there is no file, or if the system cannot tell.
std::optional<FileState> state_of_file(const std::string& path);
bool is_readable(const std::string& path);  ///< Whether this process may read the file.
bool is_writable(const std::string& path);  ///< Whether this process may write the file, or files in the folder.
/// Returns a path in the folder for temporary files that no other call of any process returns: "…/xtape-NAME-…".
std::string temporary_path(const std::string& name, const std::string& ending);
/// Whether the whole text fits a pattern of the shell, with *, ? and [...].
bool fits_pattern(const std::string& text, const std::string& pattern);

}  // namespace xtape
