/// The memory of this process: what it may have and what is left, for errors that come before the system's own.
#pragma once

#include <cstddef>
#include <string>

#include "xtape/error.hpp"

namespace xtape {

/// A size for messages: "1 byte", "3 bytes", "1.50 MiB".
std::string bytes_text(std::size_t bytes);

/// The largest number of bytes that this process can use: the memory of the machine with its swap, or a limit of the
/// process (ulimit -v, ulimit -d) if that is lower.
std::size_t memory_limit();

/// How much address space the limit on it (ulimit -v) leaves; the largest std::size_t if there is none.
std::size_t address_space_left();

/// How much more memory this process can take.
struct MemoryLeft {
  std::size_t bytes = 0;
  std::string limit;  ///< What limits it: "ulimit -v: 400.00 MiB", "memory of the machine: 16.00 GiB".
};

/// The least of what the limits of the process, of its control group and the free memory of the machine leave.
MemoryLeft memory_left();

/// For the end of messages: "12.00 MiB are left (ulimit -v: 400.00 MiB)".
std::string memory_left_text();

/// Whether the system would map so many bytes now.
bool can_map(std::size_t bytes);

/// The system or a limit of the process refuses memory. A search for another error that meets it has not found that.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Throws OutOfMemory "out of memory: WHAT takes 3.00 GiB, and 1.20 GiB are left (…)" if more than what is left is
/// asked for. Asks the system only about sizes that matter.
void require_memory_left(std::size_t bytes, const std::string& what);

}  // namespace xtape
