/// Where buffers lie: the arena, and the offsets in it.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "xtape/player.hpp"

namespace xtape {

/// The bytes that this process can have: the machine's memory with its swap, or less where a limit is set (ulimit -v).
std::size_t memory_limit();

/// "3 bytes", "1.50 MiB".
std::string bytes_text(std::size_t bytes);

/// Memory at an address that never changes: address space is reserved at the first use, and taken into use as players
/// need it, on huge pages.
class Arena {
 public:
  /// For plans of at most `most` bytes. It reserves room for that, or for the machine's whole memory where this is less;
  /// under a limit on address space for half of what is left, so that weights and outputs have room, too; and where this
  /// cannot be had for half as much, and so on, down to what the first plan needs.
  explicit Arena(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  /// Makes the first `bytes` usable, from where on `base` is valid. Throws Error where they are more than is reserved, or
  /// the system refuses them.
  void grow(std::size_t bytes);
  std::size_t reserved() const { return reserved_; }
  std::byte* base() const { return base_; }

 private:
  void reserve_for(std::size_t bytes);
  bool reserve(std::size_t bytes);

  std::size_t most_;
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
/// it (best fit). With `reuse` false no two share memory at all. A total beyond 2^64 - 1 is that number.
Offsets assign_offsets(const std::vector<Lifetime>& lifetimes, bool reuse);

}  // namespace xtape
