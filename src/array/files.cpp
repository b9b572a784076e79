#include "files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "durable.hpp"

namespace xtape {

namespace {
/// Opens a plain file for reading. A pipe is not waited for.
int open_plain(const std::string& path, struct stat& status) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
  const std::string why = file < 0                    ? std::strerror(errno)
                          : S_ISDIR(status.st_mode) ? "it is a directory"
                                                    : "it is not a plain file";
  if (file >= 0) close(file);
  throw FileError("cannot read '" + path + "': " + why);
}
}  // namespace

std::string read_file(const std::string& path) {
  struct stat status {};
  const int file = open_plain(path, status);
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(status.st_size));
  char piece[1 << 16];
  ssize_t count = 0;
  while ((count = read(file, piece, sizeof piece)) != 0) {
    if (count > 0) {
      bytes.append(piece, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      const std::string why = std::strerror(errno);
      close(file);
      throw FileError("cannot read '" + path + "': " + why);
    }
  }
  close(file);
  return bytes;
}

MappedFile::MappedFile(const std::string& path) {
  struct stat status {};
  const int file = open_plain(path, status);
  size_ = static_cast<std::size_t>(status.st_size);
  void* data = size_ == 0 ? nullptr : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) throw FileError("cannot map '" + path + "': " + std::strerror(errno));
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

ReplacedFile::ReplacedFile(const std::string& path)
    : path_(path), beside_(path + ".writing-" + std::to_string(getpid())) {
  file_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail();
}

ReplacedFile::~ReplacedFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(beside_.c_str());
}

void ReplacedFile::fail() const {
  throw FileError("cannot write '" + path_ + "': " + std::strerror(errno));
}

void ReplacedFile::write(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(file_, from, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    from += written;
    count -= static_cast<std::size_t>(written);
  }
}

void ReplacedFile::commit() {
  if (fsync(file_) != 0) fail();
  const int file = std::exchange(file_, -1);
  if (close(file) != 0 || std::rename(beside_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    unlink(beside_.c_str());
    errno = reason;
    fail();
  }
  flush_folder(folder_of(path_));  // the rename is safe on the disk once the folder is
}

}  // namespace xtape
