#include "allocations.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {
std::atomic<std::int64_t> calls{0};
}  // namespace

// A sanitizer replaces these functions itself. GCC announces a sanitizer by a macro, Clang by a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define XTAPE_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XTAPE_SANITIZED
#endif

#ifdef XTAPE_SANITIZED

namespace xtape {
bool allocations_are_counted() {
  return false;
}
}  // namespace xtape

#else

namespace xtape {
bool allocations_are_counted() {
  return true;
}
}  // namespace xtape

// These functions replace those of the C library, which remain available under other names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** place, std::size_t alignment, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *place = memory;
  return 0;
}
}

#endif

namespace xtape {
std::int64_t allocations() {
  return calls.load(std::memory_order_relaxed);
}
}  // namespace xtape
