#include "base/system/process_memory.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::size_t machine_memory() {
  constexpr std::size_t unknown = std::size_t{2} << 20;
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return unknown;
  return (static_cast<std::size_t>(info.totalram) + static_cast<std::size_t>(info.totalswap)) * info.mem_unit;
}

std::size_t limit_of(int resource) {
  struct rlimit limit {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return unlimited;
  return static_cast<std::size_t>(limit.rlim_cur);
}

/// Returns the beginning of a file of the kernel, or "" if it cannot be read. Does not use streams, because it also
/// runs before the constructors of the C++ library.
std::string beginning_of(const char* path) {
  constexpr std::size_t most = 8192;
  std::string text(most, '\0');
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = file < 0 ? 0 : read(file, text.data(), most);
  if (file >= 0) close(file);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  return text;
}

/// Returns the number after `word`, or `otherwise` if there is none.
std::size_t number_behind(const std::string& text, const std::string& word, std::size_t otherwise) {
  const std::size_t found = text.find(word);
  if (found == std::string::npos) return otherwise;
  const std::size_t digits = text.find_first_not_of(" \t", found + word.size());
  if (digits == std::string::npos || text[digits] < '0' || text[digits] > '9') return otherwise;
  return std::strtoull(text.c_str() + digits, nullptr, 10);
}

std::size_t difference(std::size_t limit, std::size_t taken) {
  return limit - std::min(limit, taken);
}

/// Returns the memory that a limit of the process leaves. /proc/self/status gives the used amount under `word`.
MemoryLeft left_of(const char* name, int resource, const char* word) {
  const std::size_t limit = limit_of(resource);
  if (limit == unlimited) return {unlimited, ""};
  const std::size_t taken = number_behind(beginning_of("/proc/self/status"), word, 0) * 1024;
  return {difference(limit, taken), std::string(name) + ": " + bytes_text(limit)};
}

/// Returns the memory that the control group, for example of a container, leaves. The memory of cached files counts as
/// free.
MemoryLeft left_of_group() {
  struct Files {
    const char *limit, *used, *statistics, *cached;
  };
  static constexpr Files versions[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "\ninactive_file "},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
       "/sys/fs/cgroup/memory/memory.stat", "\ntotal_inactive_file "}};
  for (const Files& files : versions) {
    const std::size_t limit = number_behind(beginning_of(files.limit), "", unlimited);
    if (limit >= machine_memory()) continue;
    const std::size_t used = number_behind(beginning_of(files.used), "", 0);
    const std::size_t cached = number_behind(beginning_of(files.statistics), files.cached, 0);
    return {difference(limit, difference(used, cached)), "control group: " + bytes_text(limit)};
  }
  return {unlimited, ""};
}

MemoryLeft left_of_machine() {
  const std::string text = beginning_of("/proc/meminfo");
  const std::size_t free = number_behind(text, "MemAvailable:", unlimited / 1024) + number_behind(text, "SwapFree:", 0);
  return {free >= unlimited / 1024 ? unlimited : free * 1024, "memory of the machine: " + bytes_text(machine_memory())};
}
}  // namespace

std::string bytes_text(std::size_t bytes) {
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  auto count = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; count >= 1024 && unit + 1 < std::size(units); ++unit) count /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", count, units[unit]);
  return text;
}

std::size_t memory_limit() {
  return std::min({machine_memory(), limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA), limit_of(RLIMIT_RSS)});
}

std::size_t address_space_left() {
  return left_of("ulimit -v", RLIMIT_AS, "\nVmSize:").bytes;
}

MemoryLeft memory_left() {
  const MemoryLeft all[] = {left_of("ulimit -v", RLIMIT_AS, "\nVmSize:"),
                            left_of("ulimit -d", RLIMIT_DATA, "\nVmData:"),
                            left_of("ulimit -m", RLIMIT_RSS, "\nRssAnon:"), left_of_group(), left_of_machine()};
  return *std::min_element(std::begin(all), std::end(all),
                           [](const MemoryLeft& a, const MemoryLeft& b) { return a.bytes < b.bytes; });
}

std::string memory_left_text() {
  const MemoryLeft left = memory_left();
  return bytes_text(left.bytes) + " are left (" + left.limit + ")";
}

bool can_map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

namespace {
/// Returns the lowest address of this thread's stack, or 0 if the system cannot tell.
std::uintptr_t lowest_address() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uintptr_t>(lowest);
}
}  // namespace

std::size_t stack_left() {
  thread_local const std::uintptr_t lowest = lowest_address();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // A frame below `lowest` is on a stack that the caller created, such as a fiber's stack. Its size is unknown.
  return here > lowest ? here - lowest : SIZE_MAX;
}

void require_memory_left(std::size_t bytes, const std::string& what) {
  constexpr std::size_t matters = std::size_t{64} << 20;
  if (bytes < matters || bytes <= memory_left().bytes) return;
  throw OutOfMemory("out of memory: " + what + " takes " + bytes_text(bytes) + ", and " + memory_left_text());
}

void require_memory_left(std::size_t count, std::size_t each, const std::string& what) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) bytes = std::numeric_limits<std::size_t>::max();
  require_memory_left(bytes, what);
}

}  // namespace xtape
