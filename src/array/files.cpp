#include "files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "durable.hpp"

namespace xtape {

OpenFile::OpenFile(const std::string& path) : path_(path) {
  struct stat status {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a pipe does not block
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    const std::string why = file < 0                    ? std::strerror(errno)
                            : S_ISDIR(status.st_mode) ? "it is a directory"
                                                      : "it is not a plain file";
    if (file >= 0) close(file);
    throw FileError("cannot read '" + path + "': " + why);
  }
  file_ = file;
  size_ = static_cast<std::uint64_t>(status.st_size);
}

OpenFile::~OpenFile() {
  close(file_);
}

void OpenFile::read(std::uint64_t offset, void* to, std::size_t count) const {
  auto* bytes = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = pread(file_, bytes, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError("cannot read '" + path_ + "': " + std::strerror(errno));
    if (got == 0)
      throw FileError("cannot read '" + path_ + "': it ends at byte " + std::to_string(offset) + ", but had " +
                      std::to_string(size_) + " bytes when it was opened");
    bytes += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::string read_file(const std::string& path) {
  const OpenFile file(path);
  std::string bytes(file.size(), '\0');
  file.read(0, bytes.data(), bytes.size());
  return bytes;
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

void ReplacedFile::rewrite(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  for (std::size_t done = 0; done < count;) {
    const ssize_t written = ::pwrite(file_, from + done, count - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    done += static_cast<std::size_t>(written);
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
  flush_folder(folder_of(path_));  // puts the rename on the disk
}

}  // namespace xtape
