#include "base/system/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/system/durable.hpp"
#include "base/system/folder_file.hpp"

namespace xtape {

OpenFile::OpenFile(const std::string& path) : path_(path) {
  if (path.find('\0') != std::string::npos) throw FileError("cannot read '" + path + "': it has a zero byte");
  struct stat status {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a pipe does not block
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    const std::string why = file < 0                  ? std::strerror(errno)
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
  if (const PathInside inside = path_inside(path); inside.file != nullptr && inside.text() != nullptr)
    return *inside.text();
  const OpenFile file(path);
  std::string bytes(file.size(), '\0');
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

std::string link_target(std::string path) {
  constexpr int most = 40;  // the number of links that Linux follows
  for (int links = 0; links < most; ++links) {
    std::error_code none;
    const std::filesystem::path to = std::filesystem::read_symlink(path, none);
    if (none) return path;
    path = to.is_absolute() ? to.string() : path_in(folder_of(path), to.string());
  }
  throw FileError("cannot follow '" + path + "': " + std::strerror(ELOOP));
}

ReplacedFile::ReplacedFile(const std::string& path) : path_(path), target_(path) {
  const bool direct = path_exists(path) && !is_plain_file(path);
  if (!direct) {
    target_ = link_target(path);
    beside_ = target_ + ".writing-" + std::to_string(getpid());
  }
  file_ = open(direct ? path.c_str() : beside_.c_str(),
               O_WRONLY | O_CLOEXEC | O_NOCTTY | (direct ? 0 : O_CREAT | O_TRUNC), 0666);
  if (file_ < 0) fail();
}

ReplacedFile::~ReplacedFile() {
  if (file_ < 0) return;
  close(file_);
  if (!is_direct()) unlink(beside_.c_str());
}

void ReplacedFile::fail() const {
  throw FileError("cannot write '" + path_ + "': " + std::strerror(errno));
}

void ReplacedFile::write_out(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(file_, from, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    from += written;
    count -= static_cast<std::size_t>(written);
  }
}

void ReplacedFile::write(const void* bytes, std::size_t count) {
  if (is_direct())
    held_.append(static_cast<const char*>(bytes), count);
  else
    write_out(bytes, count);
}

void ReplacedFile::rewrite(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  if (is_direct()) {
    held_.replace(0, count, from, count);
    return;
  }
  for (std::size_t done = 0; done < count;) {
    const ssize_t written = ::pwrite(file_, from + done, count - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    done += static_cast<std::size_t>(written);
  }
}

void ReplacedFile::commit() {
  if (is_direct()) {
    write_out(held_.data(), held_.size());
    if (close(std::exchange(file_, -1)) != 0) fail();
    return;
  }
  if (fsync(file_) != 0) fail();
  const int file = std::exchange(file_, -1);
  if (close(file) != 0 || std::rename(beside_.c_str(), target_.c_str()) != 0) {
    const int reason = errno;
    unlink(beside_.c_str());
    errno = reason;
    fail();
  }
  flush_folder(folder_of(target_));  // flushes the rename to the disk
}

}  // namespace xtape
