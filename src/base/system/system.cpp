#include "base/system/system.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/arrays/lengths.hpp"
#include "base/system/process_memory.hpp"

namespace xtape {

std::size_t page_size() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

namespace {
std::byte* anonymous_memory(std::size_t bytes, int access, int more) {
  void* memory = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}
}  // namespace

std::byte* map_memory(std::size_t bytes) {
  return anonymous_memory(bytes, PROT_READ | PROT_WRITE, 0);
}

std::byte* reserve_memory(std::size_t bytes) {
  return anonymous_memory(bytes, PROT_NONE, MAP_NORESERVE);
}

bool make_usable(std::byte* begin, std::size_t bytes) {
  if (mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  prefer_huge_pages(begin, bytes);
  return true;
}

void prefer_huge_pages(std::byte* begin, std::size_t bytes) {
  madvise(begin, bytes / huge_page * huge_page, MADV_HUGEPAGE);
}

void forget_memory(std::byte* begin, std::size_t bytes) {
  madvise(begin, bytes, MADV_DONTNEED);
}

void unmap_memory(std::byte* begin, std::size_t bytes) {
  munmap(begin, bytes);
}

std::size_t resident_bytes() {
  std::size_t whole = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> whole >> resident;
  return resident * page_size();
}

std::size_t resident_bytes(const void* begin, std::size_t bytes) {
  const std::size_t page = page_size();
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const std::size_t all = reinterpret_cast<std::uintptr_t>(begin) + bytes - first;
  std::vector<unsigned char> of_page(round_up(all, page) / page);
  if (bytes == 0 || mincore(reinterpret_cast<void*>(first), all, of_page.data()) != 0) return bytes;
  const auto here = std::count_if(of_page.begin(), of_page.end(), [](unsigned char each) { return (each & 1) != 0; });
  return std::min(bytes, static_cast<std::size_t>(here) * page);
}

std::size_t peak_resident_bytes() {
  struct rusage usage {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::size_t>(usage.ru_maxrss) * 1024 : 0;
}

void return_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

namespace {
/// Opens a file to read it. Throws FileError: a name with a byte 0 would name another file.
int opened(const std::string& path, int flags) {
  const bool is_name = path.find('\0') == std::string::npos;
  const int file = is_name ? open(path.c_str(), O_RDONLY | O_CLOEXEC | flags) : -1;
  if (file >= 0) return file;
  throw FileError("cannot read " + path + ": " + (is_name ? std::strerror(errno) : "the name has a byte 0"));
}
}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path), file_(opened(path, O_NONBLOCK)) {
  try {
    size_ = size_now();
    if (size_ > 0) memory_ = mapped(PROT_READ);
  } catch (...) {
    close(file_);
    throw;
  }
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) munmap(memory_, size_);
  close(file_);
}

void MappedFile::fail(const std::string& why) const {
  throw FileError("cannot read " + path_ + ": " + why);
}

std::size_t MappedFile::size_now() const {
  struct stat status {};
  if (fstat(file_, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("it is not a plain file");
  return static_cast<std::size_t>(status.st_size);
}

void* MappedFile::mapped(int access) const {
  void* memory = mmap(nullptr, size_, access, MAP_PRIVATE | MAP_NORESERVE, file_, 0);
  if (memory == MAP_FAILED) fail(std::strerror(errno));
  prefer_huge_pages(static_cast<std::byte*>(memory), size_);  // what is not cached yet is then read in such pages
  return memory;
}

std::shared_ptr<std::byte> MappedFile::writable() const {
  if (size_now() < size_) fail("it has become shorter");
  return {static_cast<std::byte*>(mapped(PROT_READ | PROT_WRITE)),
          [size = size_](std::byte* memory) { munmap(memory, size); }};
}

InputFile::InputFile(const std::string& path) : path_(path), file_(opened(path, 0)) {}

InputFile::~InputFile() {
  if (file_ > 0) close(file_);
}

std::size_t InputFile::read(char* to, std::size_t most) {
  ssize_t count = -1;
  do {
    count = ::read(file_, to, most);
  } while (count < 0 && errno == EINTR);
  if (count < 0) throw FileError("cannot read " + path_ + ": " + std::strerror(errno));
  return static_cast<std::size_t>(count);
}

std::string InputFile::first(std::size_t most) const {
  std::string bytes(most, '\0');
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, pread(file_, bytes.data(), most, 0))));
  return bytes;
}

bool InputFile::ready_within(int milliseconds) const {
  pollfd input = {file_, POLLIN, 0};
  return poll(&input, 1, milliseconds) > 0;
}

std::optional<FileState> state_of_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  const mode_t mode = status.st_mode;
  return FileState{S_ISREG(mode)    ? FileState::regular
                   : S_ISDIR(mode)  ? FileState::folder
                   : S_ISFIFO(mode) ? FileState::pipe
                   : S_ISSOCK(mode) ? FileState::socket
                                    : FileState::device,
                   static_cast<std::size_t>(status.st_size),
                   std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec)};
}

bool is_readable(const std::string& path) {
  return access(path.c_str(), R_OK) == 0;
}

bool is_writable(const std::string& path) {
  return access(path.c_str(), W_OK) == 0;
}

std::string temporary_path(const std::string& name, const std::string& ending) {
  static std::atomic<int> number = 0;
  const std::string unique = std::to_string(getpid()) + "-" + std::to_string(number++);
  return (std::filesystem::temp_directory_path() / ("xtape-" + name + "-" + unique + ending)).string();
}

bool fits_pattern(const std::string& text, const std::string& pattern) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace xtape
