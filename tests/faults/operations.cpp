#include "operations.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace faults {

namespace {
constexpr int flag_create = 0100;  // O_CREAT; fcntl.h would rename the functions that are defined here
constexpr int most_files = 1024;

bool counting = false;
char root[512];
Fault fault = Fault::none;
int fault_at = -1;
bool full = false;
char opened[most_files][112];  // the paths of open files that are counted; "" for others

bool below_root(const char* path) {
  return counting && path != nullptr && std::strncmp(path, root, std::strlen(root)) == 0;
}
bool is_counted(int file) {
  return counting && file >= 0 && file < most_files && opened[file][0] != '\0';
}
void copy_end(char* to, std::size_t room, const char* from) {
  const std::size_t length = std::strlen(from);
  std::strncpy(to, from + (length < room ? 0 : length - room + 1), room - 1);
}
int remember(int file, const char* path) {
  if (file >= 0 && file < most_files) copy_end(opened[file], sizeof opened[file], path);
  return file;
}

/// Counts an operation. Returns the errno with which it must fail, or 0. `half` does half of a write.
template <class Half>
int next(const char* name, const char* path, bool needs_room, const Half& half) {
  Report& to = report();
  const int number = to.count++;
  if (number < most_operations) {
    Operation& operation = to.operations[number];
    copy_end(operation.name, sizeof operation.name, name);
    copy_end(operation.path, sizeof operation.path, path);
    operation.needs_room = needs_room;
  }
  if (full && needs_room) return ENOSPC;
  if (number != fault_at) return 0;
  switch (fault) {
    case Fault::none:
      return 0;
    case Fault::kill:
      half();
      kill(getpid(), SIGKILL);
      return 0;
    case Fault::no_space:
      half();
      full = true;
      return needs_room ? ENOSPC : 0;
    case Fault::io_error:
      return EIO;
    case Fault::no_memory:
      return ENOMEM;
  }
  return 0;
}
int next(const char* name, const char* path, bool needs_room) {
  return next(name, path, needs_room, [] {});
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool failed(int reason) {
  if (reason != 0) errno = reason;
  return reason != 0;
}
}  // namespace

Report& report() {
  static auto* shared =
      static_cast<Report*>(mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

void begin(const std::string& folder, Fault the_fault, int at) {
  report() = Report();
  std::strncpy(root, folder.c_str(), sizeof root - 1);
  fault = the_fault;
  fault_at = at;
  full = false;
  counting = true;
}

}  // namespace faults

using namespace faults;

// CALL defines a function with the declaration, and under the name, of the C library's function that it replaces.
#define CALL(result, name, ...)                                 \
  extern "C" result counted_##name(__VA_ARGS__) __asm__(#name); \
  extern "C" result counted_##name(__VA_ARGS__)
#define REAL(name) static auto* const original = real<decltype(counted_##name)>(#name)

#define DEFINE_OPEN(name)                                                  \
  CALL(int, name, const char* path, int flags, unsigned mode) {            \
    REAL(name);                                                            \
    if (!below_root(path)) return original(path, flags, mode);             \
    if (failed(next("open", path, (flags & flag_create) != 0))) return -1; \
    return remember(original(path, flags, mode), path);                    \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name)                                                                   \
  CALL(int, name, int folder, const char* path, int flags, unsigned mode) {                   \
    REAL(name);                                                                               \
    if (!below_root(path) && !is_counted(folder)) return original(folder, path, flags, mode); \
    if (failed(next("open", path, (flags & flag_create) != 0))) return -1;                    \
    return remember(original(folder, path, flags, mode), path);                               \
  }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

#define DEFINE_FOPEN(name)                                          \
  CALL(FILE*, name, const char* path, const char* mode) {           \
    REAL(name);                                                     \
    if (!below_root(path)) return original(path, mode);             \
    if (failed(next("open", path, mode[0] != 'r'))) return nullptr; \
    FILE* file = original(path, mode);                              \
    if (file != nullptr) remember(fileno(file), path);              \
    return file;                                                    \
  }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

CALL(int, close, int file) {
  REAL(close);
  if (!is_counted(file)) return original(file);
  const int reason = next("close", opened[file], false);
  opened[file][0] = '\0';
  const int result = original(file);
  return failed(reason) ? -1 : result;
}
CALL(int, fclose, FILE* stream) {
  REAL(fclose);
  const int file = stream == nullptr ? -1 : fileno(stream);
  if (!is_counted(file)) return original(stream);
  const int reason = next("close", opened[file], false);
  opened[file][0] = '\0';
  const int result = original(stream);
  return failed(reason) ? EOF : result;
}

CALL(ssize_t, read, int file, void* to, size_t count) {
  REAL(read);
  if (is_counted(file) && failed(next("read", opened[file], false))) return -1;
  return original(file, to, count);
}
CALL(ssize_t, pread64, int file, void* to, size_t count, long at) {
  REAL(pread64);
  if (is_counted(file) && failed(next("read", opened[file], false))) return -1;
  return original(file, to, count, at);
}
CALL(ssize_t, write, int file, const void* from, size_t count) {
  REAL(write);
  if (is_counted(file) && failed(next("write", opened[file], true, [&] { original(file, from, count / 2); })))
    return -1;
  return original(file, from, count);
}
CALL(ssize_t, pwrite64, int file, const void* from, size_t count, long at) {
  REAL(pwrite64);
  if (is_counted(file) && failed(next("write", opened[file], true, [&] { original(file, from, count / 2, at); })))
    return -1;
  return original(file, from, count, at);
}
struct iovec;
CALL(ssize_t, writev, int file, const iovec* from, int count) {
  REAL(writev);
  if (is_counted(file) && failed(next("write", opened[file], true, [&] { original(file, from, count / 2); })))
    return -1;
  return original(file, from, count);
}

// Counted files are not flushed: only the process dies here, and waiting for the disk would take most of the time.
#define DEFINE_SYNC(symbol)                                    \
  CALL(int, symbol, int file) {                                \
    REAL(symbol);                                              \
    if (!is_counted(file)) return original(file);              \
    return failed(next("fsync", opened[file], true)) ? -1 : 0; \
  }
DEFINE_SYNC(fsync)
DEFINE_SYNC(fdatasync)

#define DEFINE_TRUNCATE(symbol)                                                        \
  CALL(int, symbol, int file, long length) {                                           \
    REAL(symbol);                                                                      \
    if (is_counted(file) && failed(next("ftruncate", opened[file], false))) return -1; \
    return original(file, length);                                                     \
  }
DEFINE_TRUNCATE(ftruncate)
DEFINE_TRUNCATE(ftruncate64)

CALL(int, flock, int file, int how) {
  REAL(flock);
  if (is_counted(file) && failed(next("flock", opened[file], false))) return -1;
  return original(file, how);
}

#define DEFINE_ON_PATH(symbol, name)                                    \
  CALL(int, symbol, const char* path) {                                 \
    REAL(symbol);                                                       \
    if (below_root(path) && failed(next(name, path, false))) return -1; \
    return original(path);                                              \
  }
DEFINE_ON_PATH(unlink, "unlink")
DEFINE_ON_PATH(rmdir, "rmdir")
DEFINE_ON_PATH(remove, "unlink")

CALL(int, unlinkat, int folder, const char* path, int flags) {
  REAL(unlinkat);
  if ((below_root(path) || is_counted(folder)) && failed(next("unlink", path, false))) return -1;
  return original(folder, path, flags);
}
CALL(int, mkdir, const char* path, unsigned mode) {
  REAL(mkdir);
  if (below_root(path) && failed(next("mkdir", path, true))) return -1;
  return original(path, mode);
}
CALL(int, rename, const char* from, const char* to) {
  REAL(rename);
  if (below_root(to) && failed(next("rename", to, true))) return -1;
  return original(from, to);
}
CALL(int, renameat2, int a, const char* from, int b, const char* to, unsigned flags) {
  REAL(renameat2);
  if (below_root(to) && failed(next("rename", to, true))) return -1;
  return original(a, from, b, to, flags);
}

#define DEFINE_STAT(symbol)                                               \
  CALL(int, symbol, const char* path, void* status) {                     \
    REAL(symbol);                                                         \
    if (below_root(path) && failed(next("stat", path, false))) return -1; \
    return original(path, status);                                        \
  }
DEFINE_STAT(stat)
DEFINE_STAT(stat64)
DEFINE_STAT(lstat)
DEFINE_STAT(lstat64)
#define DEFINE_FSTAT(symbol)                                                      \
  CALL(int, symbol, int file, void* status) {                                     \
    REAL(symbol);                                                                 \
    if (is_counted(file) && failed(next("stat", opened[file], false))) return -1; \
    return original(file, status);                                                \
  }
DEFINE_FSTAT(fstat)
DEFINE_FSTAT(fstat64)

#define DEFINE_MMAP(symbol)                                                                      \
  CALL(void*, symbol, void* at, size_t size, int protection, int flags, int file, long offset) { \
    REAL(symbol);                                                                                \
    if (is_counted(file) && failed(next("mmap", opened[file], false))) return MAP_FAILED;        \
    return original(at, size, protection, flags, file, offset);                                  \
  }
DEFINE_MMAP(mmap)
DEFINE_MMAP(mmap64)

CALL(DIR*, opendir, const char* path) {
  REAL(opendir);
  if (below_root(path) && failed(next("opendir", path, false))) return nullptr;
  DIR* folder = original(path);
  if (folder != nullptr && below_root(path)) remember(dirfd(folder), path);
  return folder;
}
CALL(int, closedir, DIR* folder) {
  REAL(closedir);
  const int file = dirfd(folder);
  if (is_counted(file)) opened[file][0] = '\0';  // the library itself closes the file
  return original(folder);
}
#define DEFINE_READDIR(symbol)                                                                              \
  CALL(dirent*, symbol, DIR* folder) {                                                                      \
    REAL(symbol);                                                                                           \
    if (is_counted(dirfd(folder)) && failed(next("readdir", opened[dirfd(folder)], false))) return nullptr; \
    return original(folder);                                                                                \
  }
DEFINE_READDIR(readdir)
DEFINE_READDIR(readdir64)
