#include "target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace xtape::fuzz {

MemoryFile::MemoryFile(Input bytes)
    : file_(memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(file_)) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0) throw Broken("the system gives no memory for a file");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

MemoryFile::~MemoryFile() {
  close(file_);
}

const std::string& folder() {
  namespace fs = std::filesystem;
  struct Folder {
    std::string path;
    Folder() {
      const fs::path where = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
      path = (where / ("xtape-fuzz-" + std::to_string(getpid()))).string();
      fs::create_directories(path);
    }
    ~Folder() {
      std::error_code none;
      fs::remove_all(path, none);
    }
  };
  static const Folder made;
  return made.path;
}

void write(const std::string& path, Input bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::string> parts(Input input, std::size_t count) {
  constexpr Input line = "\n----\n";
  std::vector<std::string> found;
  while (found.size() + 1 < count) {
    const std::size_t end = std::min(input.find(line), input.size());
    found.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(input.size(), end + line.size()));
  }
  found.emplace_back(input);
  return found;
}

}  // namespace xtape::fuzz
