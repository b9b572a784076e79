/// Checks the limits of the process before the constructors of its libraries run. A constructor that gets no memory
/// ends the process without a message that says why.
#include <string>

#include "base/system/process_memory.hpp"
#include "cli/commands.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define XTAPE_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XTAPE_SANITIZED
#endif

// A sanitizer must prepare the process before any of its code runs. It also needs terabytes of address space itself.
#ifndef XTAPE_SANITIZED
namespace xtape::cli {
namespace {

constexpr std::size_t least_stack = std::size_t{256} << 10;
constexpr std::size_t for_libraries = std::size_t{32} << 20;  // memory that they take during their start

[[noreturn]] void refuse(const std::string& message) {
  end_process("xtape: " + message + "\n", work_failed);
}

void check_limits() {
  if (stack_limit() < least_stack)
    refuse("the stack may have " + bytes_text(stack_limit()) + " (ulimit -s), and at least " + bytes_text(least_stack) +
           " are needed");
  if (!can_map(for_libraries))
    refuse("out of memory: starting needs " + bytes_text(for_libraries) + " of address space, and " +
           memory_left_text());
}

// The dynamic linker calls these functions of a program before any constructor of a shared library.
__attribute__((section(".preinit_array"), used)) void (*const first)() = check_limits;

}  // namespace
}  // namespace xtape::cli
#endif
