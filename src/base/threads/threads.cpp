#include "base/threads/threads.hpp"

#include <atomic>
#include <memory>

#include "base/system/team.hpp"
#include "base/threads/activity.hpp"
#include "base/threads/simulated_team.hpp"

namespace xtape {

namespace {
template <class Member>
void in_team(int threads, const Member& member) {
  run_team(threads, &member, [](const void* context, int worker) { (*static_cast<const Member*>(context))(worker); });
}

struct alignas(64) Range {
  std::atomic<std::int64_t> next;
  std::int64_t end;
};

/// Returns memory of the calling thread for a range of each worker. The memory grows when the thread's team does.
Range* memory_of_ranges(int threads) {
  thread_local std::unique_ptr<Range[]> ranges;
  thread_local int most = 0;
  if (threads > most) {
    ranges = std::make_unique<Range[]>(static_cast<std::size_t>(threads));
    most = threads;
  }
  return ranges.get();
}
}  // namespace

void run_pieces(int threads, std::int64_t count, std::int64_t grain, const void* context,
                void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker)) {
  if (count <= 0) return;
  const std::int64_t grains = ceiling(count, grain);
  if (threads <= 1 || grains <= 1 || is_alone()) return body(context, 0, count, 0);
  const Division division(threads, count, grains, grain);
  if (SimulatedTeam* team = SimulatedTeam::current()) return team->run_pieces(division, context, body);
  Range* const ranges = memory_of_ranges(threads);
  for (std::int64_t i = 0; i < division.ranges; ++i) {
    ranges[i].next = division.begin(i);
    ranges[i].end = division.end(i);
  }
  const Activity* activity = Activity::current();
  const auto member = [&](int worker) {
    const Help help(worker == 0 ? nullptr : activity);
    for (std::int64_t i = 0; i < division.ranges; ++i) {
      Range& range = ranges[(worker + i) % division.ranges];
      for (std::int64_t begin; (begin = range.next.fetch_add(division.piece, std::memory_order_relaxed)) < range.end;)
        body(context, begin, std::min(range.end, begin + division.piece), worker);
    }
  };
  in_team(division.threads(), member);
}

void run_each(int threads, std::int64_t count, const void* context,
              void (*body)(const void* context, std::int64_t index)) {
  if (SimulatedTeam* team = SimulatedTeam::current(); team != nullptr && count > 1 && threads > 1 && !is_alone())
    return team->run_each(threads, count, context, body);
  std::atomic<std::int64_t> next{0};
  const auto member = [&](int /*worker*/) {
    for (std::int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(context, index);
  };
  in_team(static_cast<int>(std::min<std::int64_t>(threads, count)), member);
}

}  // namespace xtape
