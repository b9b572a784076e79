/// How a parallel loop is divided, and whether a thread has helpers: for threads.cpp, and for those who take its place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/arrays/lengths.hpp"

namespace xtape {

/// A loop over [0, count) in ranges, one for each worker, and in pieces of each range. If a worker is slow, the others
/// take pieces of its range.
struct Division {
  static constexpr std::int64_t pieces_each = 8;

  /// `grains` is the number of smallest pieces, of `grain` elements.
  Division(int threads, std::int64_t loop_count, std::int64_t grains, std::int64_t grain)
      : count(loop_count), ranges(std::min(std::int64_t{threads}, grains)) {
    const std::int64_t grains_each = ceiling(grains, ranges);
    share = grains_each * grain;
    piece = ceiling(grains_each, pieces_each) * grain;
  }
  std::int64_t begin(std::int64_t range) const { return std::min(count, range * share); }
  std::int64_t end(std::int64_t range) const { return begin(range + 1); }
  /// The number of threads that have work at the same time. With fewer ranges than threads, each has one piece.
  int threads() const { return static_cast<int>(ranges); }

  std::int64_t count;
  std::int64_t ranges;  ///< The last ones can be empty.
  std::int64_t share;   ///< The number of elements of a range.
  std::int64_t piece;   ///< The number of elements of a piece.
};

/// The time that a helper without work spins before it sleeps. With a shorter time, the next call of the same play must
/// wake the helper, which takes about 10 µs. With a longer time, it takes the core from a thread that has work.
inline constexpr double seconds_awake = 1e-4;

/// Returns whether the calling thread has no helpers: in a member, in a helper, and after the end of its team.
bool is_alone();

/// For the lifetime of this object, the calling thread has no helpers.
class Alone {
 public:
  Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone();

 private:
  bool before_;
};

}  // namespace xtape
