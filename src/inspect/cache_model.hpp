/// A model of the last-level cache: which memory it holds, and what comes from memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace xtape {

/// A cache that holds the memory that was used last, in blocks.
class CacheModel {
 public:
  static constexpr std::uintptr_t block = 16384;  // bytes

  explicit CacheModel(std::size_t bytes) : most_(bytes / block) {}

  /// Reads or writes memory. Returns the bytes that this moves between memory and cache: what the cache does not hold
  /// is read, also if it is written, and what leaves the cache is written if it has changed.
  std::size_t touch(const void* address, std::size_t bytes, bool written);

 private:
  struct Held {
    std::uintptr_t number;    // of the block
    std::size_t changed = 0;  // bytes that must be written
  };
  std::size_t most_;      // blocks
  std::list<Held> held_;  // the block that was used last first
  std::unordered_map<std::uintptr_t, std::list<Held>::iterator> places_;
};

inline std::size_t CacheModel::touch(const void* address, std::size_t bytes, bool written) {
  if (bytes == 0) return 0;
  std::size_t moved = 0;
  const auto first = reinterpret_cast<std::uintptr_t>(address), last = first + bytes;
  for (std::uintptr_t number = first / block; number * block < last; ++number) {
    const std::size_t here = std::min(last, (number + 1) * block) - std::max(first, number * block);
    if (const auto found = places_.find(number); found != places_.end()) {
      held_.splice(held_.begin(), held_, found->second);
    } else {
      moved += here;
      held_.push_front({number});
      places_.emplace(number, held_.begin());
    }
    if (written) held_.front().changed = std::max(held_.front().changed, here);
    if (held_.size() > most_) {
      moved += held_.back().changed;
      places_.erase(held_.back().number);
      held_.pop_back();
    }
  }
  return moved;
}

}  // namespace xtape
