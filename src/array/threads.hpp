/// Loops distributed over threads. OpenMP regions are opened in this file only.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "activity.hpp"

namespace xtape {

/// Calls body(begin, end, worker) on contiguous pieces that cover [0, count), on at most `threads` threads. The size of
/// each piece but the last is a multiple of `grain`. `worker` is in [0, threads), and pieces that run at the same time
/// have different workers, so scratch memory can be indexed by it. Every thread takes its own range in several pieces
/// and then helps with the other ranges, so that a core busy with other work does not delay the rest. If one range is
/// enough, no region is opened. `body` must not throw. Results must depend neither on the thread that runs a piece nor
/// on where a piece ends: bodies that reduce do so over chunks of fixed size.
template <class Body>
void parallel_pieces(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  constexpr std::int64_t most_ranges = 64, pieces_each = 8;
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t range_count = std::min({std::int64_t{threads}, grains, most_ranges});
  if (range_count <= 1) {
    body(std::int64_t{0}, count, std::int64_t{0});
    return;
  }
  const std::int64_t share = (grains + range_count - 1) / range_count;
  const std::int64_t piece = (share + pieces_each - 1) / pieces_each * grain;
  struct alignas(64) Range {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };
  std::array<Range, most_ranges> ranges;
  for (std::int64_t i = 0; i < range_count; ++i) {
    Range& range = ranges[static_cast<std::size_t>(i)];
    range.next = std::min(count, i * share * grain);
    range.end = std::min(count, (i + 1) * share * grain);
  }
  const Activity* activity = Activity::current();
  // The team always has the same size, so the OpenMP library reuses it for every region and allocates nothing.
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t worker = omp_get_thread_num();
    const Help help(worker == 0 ? nullptr : activity);
    for (std::int64_t i = 0; i < range_count; ++i) {
      Range& range = ranges[static_cast<std::size_t>((worker + i) % range_count)];
      for (std::int64_t begin; (begin = range.next.fetch_add(piece, std::memory_order_relaxed)) < range.end;)
        body(begin, std::min(range.end, begin + piece), worker);
    }
  }
}

/// As parallel_pieces, for bodies without scratch memory: body(begin, end).
template <class Body>
void parallel_for(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_pieces(threads, count, grain,
                  [&](std::int64_t begin, std::int64_t finish, std::int64_t) { body(begin, finish); });
}

/// Calls body(index) for every index in [0, count). Threads take one index at a time, which suits items of uneven or
/// unknown cost. `body` must not throw.
template <class Body>
void parallel_each(int threads, std::int64_t count, const Body& body) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace xtape
