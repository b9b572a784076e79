/// Memory of buffers: the arena, and the offsets in it.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process_memory.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// The memory of this process that is resident now, in bytes: code, data and everything that it has touched.
std::size_t resident_bytes();
/// The same for `bytes` bytes at `begin`.
std::size_t resident_bytes(const void* begin, std::size_t bytes);
/// The most that was ever resident.
std::size_t peak_resident_bytes();

/// Gives memory that was freed back to the system, so that it is resident no more.
void return_freed_memory();

/// The inverse of bytes_text: a number above 0 with one of the units, with or without a space between. Nothing if the text is not
/// such a size.
std::optional<std::size_t> bytes_in(const std::string& text);
inline constexpr const char* byte_units = "bytes, KiB, MiB, GiB, TiB, KB, MB, GB and TB";

class KnownWays;

/// Growable memory at an address that never changes. Address space is reserved at the first use and made usable, on
/// huge pages as far as they fit, as players need it.
class Arena {
 public:
  /// An arena for plans of at most `most` bytes. The first call of grow() reserves the minimum of `most`, the memory of
  /// the machine and, under a limit on address space, half of what is left of that, which leaves room for weights and
  /// outputs; but at least what the first plan needs. If the reservation fails, it tries half as much, and so on, down
  /// to what the first plan needs.
  explicit Arena(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  /// Makes the first `bytes` usable. `base` is valid after the first call. Throws Error if they are more than is
  /// reserved or the system refuses them.
  void grow(std::size_t bytes);
  std::size_t reserved() const { return reserved_; }
  std::size_t usable() const { return usable_; }
  /// The bytes that were touched since they were last released.
  std::size_t resident() const { return resident_bytes(base_, usable_); }
  /// Gives the memory back to the system until the next play. The values in it are lost.
  void release();
  /// What the players that share the arena know of how to keep to a memory limit (budget.hpp).
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

/// Assigns offsets so that buffers that are alive at the same step never overlap. Tries several orders: first by their
/// first step, each buffer in the smallest gap that holds it (best fit); then by size, the largest first, each at the
/// lowest offset that is free throughout its life; then again with the buffer that ended last as the first, a number of
/// times. Returns the best, or the first whose total is at most `enough`. With `reuse` false no two buffers share
/// memory. A total above 2^64 - 1 is returned as 2^64 - 1.
Offsets assign_offsets(const std::vector<Lifetime>& lifetimes, bool reuse, std::size_t enough = 0);
/// The most bytes that are alive at once: no arena is smaller.
std::size_t most_alive(const std::vector<Lifetime>& lifetimes);

}  // namespace xtape
