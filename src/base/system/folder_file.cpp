#include "base/system/folder_file.hpp"

#include <sys/stat.h>

#include <mutex>
#include <tuple>

#include "base/system/durable.hpp"

namespace xtape {

namespace {
/// What tells a file from one that replaces it.
using Version = std::tuple<std::string, dev_t, ino_t, off_t, time_t, long>;

struct Readers {
  std::mutex mutex;
  std::string ending;
  FolderFileReader reader = nullptr;
  Version version;
  std::shared_ptr<const FolderFile> last;
};
Readers& readers() {
  static Readers shared;
  return shared;
}
}  // namespace

void set_folder_file_reader(const std::string& ending, FolderFileReader reader) {
  Readers& shared = readers();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  shared.ending = ending;
  shared.reader = reader;
  shared.last = nullptr;
}

std::shared_ptr<const FolderFile> folder_file(const std::string& path) {
  Readers& shared = readers();
  struct stat status {};
  FolderFileReader reader = nullptr;
  Version version;
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    if (shared.reader == nullptr || !path.ends_with(shared.ending) || stat(path.c_str(), &status) != 0 ||
        S_ISDIR(status.st_mode))
      return nullptr;
    if (!S_ISREG(status.st_mode)) throw FileError("cannot read " + path + ": it is not a plain file");
    version = {path, status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
    if (shared.last != nullptr && version == shared.version) return shared.last;
    shared.last = nullptr;  // frees the memory of the previous file first
    reader = shared.reader;
  }
  auto file = reader(path);  // without the lock, because it reads other files
  const std::lock_guard<std::mutex> lock(shared.mutex);
  shared.last = file;
  shared.version = version;
  return file;
}

void forget_folder_file() {
  const std::lock_guard<std::mutex> lock(readers().mutex);
  readers().last = nullptr;
}

bool opens_as_folder(const std::string& path) {
  return is_folder(path) || folder_file(path) != nullptr;
}

const std::string* PathInside::text() const {
  const auto found = file->texts().find(name);
  return found == file->texts().end() ? nullptr : &found->second;
}

PathInside path_inside(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string outer = path.substr(0, slash);
  return {folder_file(outer), outer, path.substr(slash + 1)};
}

}  // namespace xtape
