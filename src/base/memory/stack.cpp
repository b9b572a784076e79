#include <pthread.h>

#include <cstdint>

#include "base/memory/process_memory.hpp"

namespace xtape {

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

}  // namespace xtape
