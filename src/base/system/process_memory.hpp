/// The memory and the stack of this process.
#pragma once

#include <cstddef>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

// The remaining stack space, for functions whose recursion depth depends on the input.

/// Returns the number of bytes of the calling thread's stack that are left below this call. Returns SIZE_MAX if the
/// call runs on another stack at a lower address, such as a fiber's stack.
std::size_t stack_left();

/// The bytes of a large page of the system, which spares entries of the processor's page table.
inline constexpr std::size_t huge_page = std::size_t{2} << 20;

// The memory of this process: its limit and the part that is left. Callers use it to throw a clear error before the
// system refuses memory.

/// Returns a size for messages: "1 byte", "3 bytes", "1.50 MiB".
std::string bytes_text(std::size_t bytes);

/// Returns the largest number of bytes that this process can use. This is the memory of the machine with its swap, or
/// the limit of the process (ulimit -v, -d or -m) if that is lower. Linux does not enforce the last, which batch
/// systems set to the memory of a job.
std::size_t memory_limit();

/// Returns how many bytes of address space the limit (ulimit -v) leaves, or the largest std::size_t if there is no
/// limit.
std::size_t address_space_left();

/// The amount of memory that this process can still take.
struct MemoryLeft {
  std::size_t bytes = 0;
  std::string limit;  ///< The source of the limit: "ulimit -v: 400.00 MiB", "memory of the machine: 16.00 GiB".
};

/// Returns the smallest of these amounts: what each limit of the process leaves, what the limit of its control group
/// leaves, and the free memory of the machine.
MemoryLeft memory_left();

/// Returns text for the end of messages: "12.00 MiB are left (ulimit -v: 400.00 MiB)".
std::string memory_left_text();

/// Returns whether the system would map this many bytes now.
bool can_map(std::size_t bytes);

/// Thrown if the system or a limit of the process refuses memory. Code that plays a tape again to find the cause of
/// another error must not take OutOfMemory for that error.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Throws OutOfMemory "out of memory: WHAT takes 3.00 GiB, and 1.20 GiB are left (…)" if `bytes` exceeds the remaining
/// memory. Queries the system only for large sizes.
void require_memory_left(std::size_t bytes, const std::string& what);
/// The same for `count` elements of `each` bytes. Use it before a table whose length the caller chooses: a vector that
/// is too long throws std::length_error.
void require_memory_left(std::size_t count, std::size_t each, const std::string& what);

}  // namespace xtape
