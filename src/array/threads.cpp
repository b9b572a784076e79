#include "threads.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "activity.hpp"

namespace xtape {

void run_pieces(int threads, std::int64_t count, std::int64_t grain, const void* context,
                void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker)) {
  if (count <= 0) return;
  constexpr std::int64_t most_ranges = 64, pieces_each = 8;
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t range_count = std::min({std::int64_t{threads}, grains, most_ranges});
  if (range_count <= 1) {
    body(context, 0, count, 0);
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
    Range& range = ranges[i];
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
      Range& range = ranges[(worker + i) % range_count];
      for (std::int64_t begin; (begin = range.next.fetch_add(piece, std::memory_order_relaxed)) < range.end;)
        body(context, begin, std::min(range.end, begin + piece), worker);
    }
  }
}

void run_each(int threads, std::int64_t count, const void* context,
              void (*body)(const void* context, std::int64_t index)) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(context, i);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) body(context, i);
}

}  // namespace xtape
