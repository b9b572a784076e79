/// Counts the allocations of all threads: calls of malloc and related functions, and so of operator new, from the
/// program and from every loaded library.
#pragma once

#include <cstdint>

namespace xtape {

/// False if a sanitizer replaces malloc: then allocations cannot be counted.
bool allocations_are_counted();

/// Allocations made in this program since it started.
std::int64_t allocations();

/// Counts the allocations since its construction.
class AllocationCount {
 public:
  AllocationCount() : before_(allocations()) {}
  std::int64_t count() const { return allocations() - before_; }

 private:
  std::int64_t before_;
};

}  // namespace xtape
