/// Counts the allocations of all threads. Counts calls of malloc and related functions, and therefore of operator new,
/// from the program and from every loaded library.
#pragma once

#include <cstdint>

namespace xtape {

/// Returns false if a sanitizer replaces malloc, because allocations cannot be counted then.
bool allocations_are_counted();

/// Returns the number of allocations in this program since its start.
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
