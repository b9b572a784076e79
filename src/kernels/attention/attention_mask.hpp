/// The keys that a row of a mask leaves visible to its query.
#pragma once

#include <cstdint>
#include <cstring>

namespace xtape {

/// Returns one more than the index of the last unmasked key among the `keys` keys of a row, but at least `seen`.
/// `column` is the stride between keys.
inline std::int64_t last_seen(const bool* row, std::int64_t column, std::int64_t keys, std::int64_t seen = 0) {
  if (column == 0) return row[0] ? seen : keys;
  if (column == 1)
    for (std::uint64_t eight = 0; keys - seen >= 8; keys -= 8) {
      constexpr std::uint64_t all_masked = 0x0101010101010101u;
      std::memcpy(&eight, row + keys - 8, 8);
      if (eight != all_masked) break;
    }
  while (keys > seen && row[(keys - 1) * column]) --keys;
  return keys;
}

}  // namespace xtape
