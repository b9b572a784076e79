#include "base/system/durable.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "base/system/folder_file.hpp"
#include "base/system/process_memory.hpp"

namespace xtape {

namespace fs = std::filesystem;

namespace {
[[noreturn]] void fail_to(const std::string& what, const std::string& path) {
  if (errno == ENOMEM)
    throw OutOfMemory("out of memory: cannot " + what + " '" + path + "', and " + memory_left_text());
  throw FileError("cannot " + what + " '" + path + "': " + std::strerror(errno));
}

/// Returns the mode that stat gives for `path`, or 0 if nothing exists there, as under a name that is too long. Throws
/// FileError if stat fails for another reason.
mode_t mode_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return status.st_mode;
  if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) fail_to("access", path);
  return 0;
}
}  // namespace

bool path_exists(const std::string& path) {
  if (mode_of(path) != 0) return true;
  const PathInside inside = path_inside(path);
  return inside.file != nullptr && (inside.text() != nullptr || inside.name == inside.file->arrays_name());
}
bool is_folder(const std::string& path) {
  return S_ISDIR(mode_of(path));
}
bool is_plain_file(const std::string& path) {
  return S_ISREG(mode_of(path));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (const auto file = folder_file(folder)) {
    for (const auto& text : file->texts()) names.push_back(text.first);
    return names;
  }
  try {
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  } catch (const fs::filesystem_error& error) {
    errno = error.code().value();
    fail_to("list", folder);
  }
  return names;
}

std::string other_name_in(const std::string& folder, const std::vector<std::string>& known) {
  for (const std::string& name : names_in(folder))
    if (!contains(known, name)) return name;
  return "";
}

void make_folders(const std::string& folder) {
  if (path_exists(folder)) return;  // if it is not a folder, its first use fails
  const std::string above = folder_of(folder);
  if (above != folder) make_folders(above);
  make_folder(folder);
}

void make_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) fail_to("make", folder);
  flush_folder(folder_of(folder));
}

std::string try_to_remove(const std::string& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  return failed ? failed.message() : "";
}

std::string try_to_rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? "" : std::strerror(errno);
}

void remove_if_possible(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

void flush_folder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0 && errno == EACCES) return;  // a folder that can be written but not read cannot be flushed
  if (file < 0) fail_to("open", folder);
  // Some file systems cannot flush a folder and return EINVAL.
  const bool failed = fsync(file) != 0 && errno != EINVAL;
  const int reason = errno;
  close(file);
  errno = reason;
  if (failed) fail_to("flush", folder);
}

std::string folder_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t slash = last == std::string::npos ? last : path.rfind('/', last);
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_to("rename '" + from + "' to", to);
  flush_folder(folder_of(to));
}

namespace {
/// Renames folder `from` to `to`. An existing `to` is replaced and then removed.
void put_in_place(const std::string& from, const std::string& to) {
  if (path_exists(to)) {
    // A plain rename cannot replace a directory that is not empty. The exchange is also atomic.
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      flush_folder(folder_of(to));
      remove_if_possible(from);
      return;
    }
    if (errno != EINVAL && errno != ENOSYS) fail_to("replace", to);
    // The file system does not support the exchange. If the process ends between the two renames, `to` does not exist.
    const std::string before = to + ".replaced" + unfinished;
    remove_if_possible(before);
    rename_path(to, before);
    try {
      rename_path(from, to);
    } catch (const FileError&) {
      if (!path_exists(to)) rename_path(before, to);
      throw;
    }
    return;
  }
  rename_path(from, to);
}
}  // namespace

bool is_unfinished(const std::string& name) {
  const std::string mark = unfinished;
  const std::size_t at = name.rfind(mark);
  if (at == std::string::npos) return false;
  const std::string rest = name.substr(at + mark.size());
  return rest.empty() ||
         (rest.size() > 1 && rest[0] == '-' && rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

void write_folder(const std::string& path, const std::function<void(const std::string& beside)>& write) {
  const std::string to = link_target(path.substr(0, path.find_last_not_of('/') + 1));  // "runs/t/" becomes "runs/t"
  const std::string beside = to + unfinished;
  remove_if_possible(beside);
  try {
    make_folder(beside);
    write(beside);
    put_in_place(beside, to);
  } catch (...) {
    remove_if_possible(beside);  // frees its space, because the disk may be full
    throw;
  }
}

void write_file(const std::string& path, const std::string& bytes) {
  ReplacedFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

AppendedFile::AppendedFile(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) fail(std::strerror(errno));
}

AppendedFile::~AppendedFile() {
  close(file_);
}

void AppendedFile::fail(const std::string& reason) const {
  throw FileError("cannot write '" + path_ + "': " + reason);
}

void AppendedFile::write(const std::string& bytes) {
  struct stat before {};
  if (fstat(file_, &before) != 0) fail(std::strerror(errno));
  if (before.st_nlink == 0) fail("it has been deleted meanwhile");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const std::string reason = std::strerror(errno);
      // If this fails too, a partial line remains. The next user of the file must remove it.
      [[maybe_unused]] const int failed = ftruncate(file_, before.st_size);
      fail(reason);
    }
    done += static_cast<std::size_t>(count);
  }
}

void AppendedFile::flush() {
  if (fsync(file_) != 0) fail(std::strerror(errno));
}

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
