/// Where buffers lie: the arena, and the offsets in it.
#pragma once

#include <cstddef>
#include <vector>

#include "xtape/player.hpp"

namespace xtape {

/// Memory at an address that never changes: room for the machine's whole memory is reserved as address space, and taken
/// into use as players need it, on huge pages.
class Arena {
 public:
  Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  /// Makes the first `bytes` usable. Throws Error where the machine has not that much.
  void grow(std::size_t bytes);
  std::byte* base() const { return base_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t reserved_ = 0;
  std::size_t usable_ = 0;
};

/// Arrays for outputs, taken anew by each plan.
class OutputPool {
 public:
  /// While one plan takes, it gets no array twice.
  void begin_plan() { taken_.assign(arrays_.size(), false); }
  Array take(std::size_t bytes);

 private:
  std::vector<Array> arrays_;
  std::vector<bool> taken_;
};

/// A buffer's bytes and the steps from its first write to its last read.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct Offsets {
  std::vector<std::size_t> of;  ///< Per lifetime; multiples of 64.
  std::size_t total = 0;
};

/// Offsets such that buffers alive at one step never overlap. In order of time; each takes the smallest gap that holds
/// it (best fit). With `reuse` false no two share memory at all.
Offsets assign_offsets(const std::vector<Lifetime>& lifetimes, bool reuse);

}  // namespace xtape
