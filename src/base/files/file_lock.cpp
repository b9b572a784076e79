#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/files/durable.hpp"

namespace xtape {

namespace {
/// Returns the line that describes this process in the lock file: process id, host, start of the lock, command line.
std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::array<char, 64> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  std::string command((std::istreambuf_iterator<char>(arguments)), std::istreambuf_iterator<char>());
  if (!command.empty()) command.pop_back();  // removes the NUL after the last argument
  for (char& c : command)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  return "process " + std::to_string(getpid()) + " on " + host.data() + " since " + since.data() + ": " + command +
         "\n";
}

/// Returns the first line of the file, or "" if the file cannot be read or is still empty.
std::string first_line(int file) {
  std::string text(1024, '\0');
  const ssize_t count = pread(file, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}
}  // namespace

FileLock::FileLock(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {
  try {
    acquire();
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

FileLock::~FileLock() {
  close(file_);  // releases the lock
}

void FileLock::acquire() {
  const auto fail = [&] { throw FileError("cannot lock '" + path_ + "': " + std::strerror(errno)); };
  while (true) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) fail();
    int failed = 0;
    while ((failed = flock(file_, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) continue;
    if (failed != 0 && errno == EWOULDBLOCK) {
      const std::string holder = first_line(file_);
      throw FileError(what_ + " is in use by " + (holder.empty() ? "another process" : holder));
    }
    // On a file system without locks, the user must ensure that a run is not trained twice at the same time.
    if (failed != 0 && errno != ENOSYS && errno != EOPNOTSUPP && errno != ENOLCK) fail();
    if (is_in_place()) break;
    close(file_);  // the previous holder moved or deleted the file after this process opened it: try again
    file_ = -1;
  }
  const std::string text = this_process();
  if (ftruncate(file_, 0) != 0 || pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    fail();
}

bool FileLock::is_in_place() const {
  struct stat locked {
  }, there{};
  if (fstat(file_, &locked) != 0) throw FileError("cannot lock '" + path_ + "': " + std::strerror(errno));
  return stat(path_.c_str(), &there) == 0 && locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
}

void FileLock::check() const {
  if (!is_in_place()) throw FileError(what_ + " has been moved or deleted meanwhile");
}

}  // namespace xtape
