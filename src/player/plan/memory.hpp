/// The memory of buffers: the arena, and the offsets of buffers in the arena.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/process_memory.hpp"
#include "base/system/system.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// The inverse of bytes_text. Reads a number above 0 and a unit, with or without a space between them. Returns nothing
/// if the text is not such a size.
std::optional<std::size_t> bytes_in(const std::string& text);
inline constexpr const char* byte_units = "bytes, KiB, MiB, GiB, TiB, KB, MB, GB and TB";

class KnownWays;

/// Growable memory at an address that never changes. The first use reserves address space. Players make parts of it
/// usable as they need them, on huge pages as far as possible.
class Arena {
 public:
  /// An arena for plans of at most `most` bytes. The first call of grow() reserves the minimum of `most` and the memory
  /// of the machine. Under a limit on address space, it reserves at most half of the remaining address space, which
  /// leaves room for weights and outputs. It reserves at least what the first plan needs. If the reservation fails,
  /// grow() halves the size until it succeeds or reaches what the first plan needs.
  explicit Arena(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  /// Makes the first `bytes` bytes usable. `base` is valid after the first call. Throws Error if `bytes` exceeds the
  /// reservation or the system refuses the memory.
  void grow(std::size_t bytes);
  std::size_t reserved() const { return reserved_; }
  std::size_t usable() const { return usable_; }
  /// Returns how many bytes were touched since the last release().
  std::size_t resident() const { return resident_bytes(base_, usable_); }
  /// Returns the memory to the system until the next play. The values in it are lost.
  void release();
  /// Returns what the players that share the arena know about ways to keep to a memory limit (budget.hpp).
  KnownWays& known_ways();
  std::byte* base() const { return base_; }

 private:
  void reserve_for(std::size_t bytes);
  bool reserve(std::size_t bytes);

  std::size_t most_;
  std::byte* base_ = nullptr;
  std::size_t reserved_ = 0;
  std::size_t usable_ = 0;
  std::shared_ptr<KnownWays> known_ways_;
};

/// The size of a buffer in bytes, and the steps of its first write and its last read.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct Offsets {
  std::vector<std::size_t> of;  ///< Per lifetime, in bytes; multiples of 64.
  std::size_t total = 0;
};

/// Assigns offsets so that buffers that are alive at the same step never overlap. Tries several orders. The first order
/// is by first step; each buffer gets the smallest gap that holds it (best fit). The second order is by size, the
/// largest first; each buffer gets the lowest offset that is free throughout its life. Each further order is the
/// previous order with one change: a buffer that reached the end of the arena moves to the front. Returns the best
/// offsets, or the first offsets whose total is at most `enough`. If `reuse` is false, no two buffers share memory. A
/// total above 2^64 - 1 is returned as 2^64 - 1.
Offsets assign_offsets(const std::vector<Lifetime>& lifetimes, bool reuse, std::size_t enough = 0);
/// Returns the largest number of bytes that are alive at once, a lower bound for the size of the arena.
std::size_t most_alive(const std::vector<Lifetime>& lifetimes);

}  // namespace xtape
