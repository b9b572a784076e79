/// Counts allocations of all threads: calls of malloc and its kin, and so of operator new, from the program and from
/// every library it has loaded.
#pragma once

#include <cstdint>

namespace xtape {

/// False where a sanitizer owns malloc: then nothing can be counted.
bool allocations_are_counted();

/// Allocations made in this program since it started.
std::int64_t allocations();

/// Allocations from its making on.
class AllocationCount {
 public:
  AllocationCount() : before_(allocations()) {}
  std::int64_t count() const { return allocations() - before_; }

 private:
  std::int64_t before_;
};

}  // namespace xtape
