#include "base/threads/threads.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/memory/lengths.hpp"
#include "base/threads/activity.hpp"

namespace xtape {

namespace {
template <class Member>
void in_team(int threads, const Member& member) {
  run_team(threads, &member, [](const void* context, int worker) { (*static_cast<const Member*>(context))(worker); });
}
}  // namespace

void run_pieces(int threads, std::int64_t count, std::int64_t grain, const void* context,
                void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker)) {
  if (count <= 0) return;
  constexpr std::int64_t most_ranges = 64, pieces_each = 8;
  const std::int64_t grains = ceiling(count, grain);
  const std::int64_t range_count = std::min({std::int64_t{threads}, grains, most_ranges});
  if (range_count <= 1) {
    body(context, 0, count, 0);
    return;
  }
  const std::int64_t share = ceiling(grains, range_count);
  const std::int64_t piece = ceiling(share, pieces_each) * grain;
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
  const auto member = [&](int worker) {
    const Help help(worker == 0 ? nullptr : activity);
    for (std::int64_t i = 0; i < range_count; ++i) {
      Range& range = ranges[(worker + i) % range_count];
      for (std::int64_t begin; (begin = range.next.fetch_add(piece, std::memory_order_relaxed)) < range.end;)
        body(context, begin, std::min(range.end, begin + piece), worker);
    }
  };
  in_team(threads, member);
}

void run_each(int threads, std::int64_t count, const void* context,
              void (*body)(const void* context, std::int64_t index)) {
  std::atomic<std::int64_t> next{0};
  const auto member = [&](int /*worker*/) {
    for (std::int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(context, index);
  };
  in_team(count > 1 ? threads : 1, member);
}

}  // namespace xtape
