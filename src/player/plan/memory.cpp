#include "player/plan/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory_resource>
#include <numeric>
#include <set>

#include "base/arrays/lengths.hpp"
#include "player/plan/budget.hpp"

namespace xtape {

std::optional<std::size_t> bytes_in(const std::string& text) {
  static const std::map<std::string, double> units = {
      {"bytes", 1}, {"byte", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"KB", 1e3},  {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12}};
  constexpr double most = 1e18;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::size_t unit = std::min(text.find_first_not_of(' ', digits), text.size());
  const std::string number = text.substr(0, digits);
  char* end = nullptr;
  const double count = std::strtod(number.c_str(), &end);
  const auto found = units.find(text.substr(unit));
  const double bytes = found == units.end() ? 0 : count * found->second;
  if (digits == 0 || *end != '\0' || !(bytes >= 1) || bytes > most) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

/// Reserves `bytes` bytes of address space. Aligns them to a huge page if `bytes` is at least the size of a huge page.
/// Returns whether the reservation succeeded.
bool Arena::reserve(std::size_t bytes) {
  const std::size_t alignment = bytes < huge_page ? page_size() : huge_page;
  const std::size_t wanted = round_up(bytes, alignment) + alignment;
  std::byte* const memory = reserve_memory(wanted);
  if (memory == nullptr) return false;
  const std::size_t address = reinterpret_cast<std::size_t>(memory);
  const std::size_t lead = round_up(address, alignment) - address;
  if (lead > 0) unmap_memory(memory, lead);
  base_ = memory + lead;
  reserved_ = wanted - lead;
  return true;
}

void Arena::reserve_for(std::size_t bytes) {
  const std::size_t wanted = std::min({most_, memory_limit(), address_space_left() / 2});
  for (std::size_t size = std::max(bytes, wanted); size <= memory_limit(); size = std::max(bytes, size / 2)) {
    if (reserve(size)) return;
    if (size == bytes) break;
  }
  throw OutOfMemory("out of memory: cannot reserve address space for an arena of " + bytes_text(bytes) + ", and " +
                    memory_left_text());
}

Arena::~Arena() {
  if (base_ != nullptr) unmap_memory(base_, reserved_);
}

void Arena::grow(std::size_t bytes) {
  if (base_ == nullptr) reserve_for(bytes);
  if (bytes <= usable_) return;
  const std::size_t wanted = bytes > reserved_ ? bytes : round_up(bytes, page_size());
  if (wanted > reserved_ || !make_usable(base_, wanted))
    throw OutOfMemory("out of memory: cannot grow an arena to " + bytes_text(bytes) +
                      ", address space is reserved for " + bytes_text(reserved_) + ", and " + memory_left_text());
  usable_ = wanted;
}

void Arena::release() {
  if (usable_ > 0) forget_memory(base_, usable_);
}

KnownWays& Arena::known_ways() {
  if (!known_ways_) known_ways_ = std::make_shared<KnownWays>();
  return *known_ways_;
}

std::shared_ptr<Arena> make_arena() {
  return std::make_shared<Arena>();
}

namespace {
/// The gaps between buffers in use, by size and by end.
class Gaps {
 public:
  std::size_t take(std::size_t bytes) {
    if (const auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end()) {
      const auto [size, begin] = *fit;
      by_size_.erase(fit);
      if (size == bytes)
        by_end_.erase(begin + size);
      else
        insert(begin + bytes, by_end_.find(begin + size));
      return begin;
    }
    std::size_t begin = total_;  // no gap is large enough: extend the end, including a gap before it
    if (const auto last = by_end_.find(total_); last != by_end_.end()) {
      begin = last->second;
      remove(last);
    }
    if (__builtin_add_overflow(begin, bytes, &total_)) total_ = std::numeric_limits<std::size_t>::max();
    return begin;
  }

  void give_back(std::size_t begin, std::size_t bytes) {
    const std::size_t end = begin + bytes;
    auto next = by_end_.lower_bound(begin);
    if (next != by_end_.end() && next->first == begin) {
      begin = next->second;
      next = remove(next);
    }
    if (next != by_end_.end() && next->second == end)
      by_size_.erase({next->first - end, end});
    else
      next = by_end_.emplace_hint(next, end, begin);
    insert(begin, next);
  }

  std::size_t total() const { return total_; }

 private:
  using ByEnd = std::pmr::map<std::size_t, std::size_t>;

  /// Lets the gap at `place` begin at `begin`.
  void insert(std::size_t begin, ByEnd::iterator place) {
    place->second = begin;
    by_size_.emplace(place->first - begin, begin);
  }
  ByEnd::iterator remove(ByEnd::iterator gap) {
    by_size_.erase({gap->first - gap->second, gap->second});
    return by_end_.erase(gap);
  }

  // reuses the memory of entries of the two sets below, because a plan adds and removes an entry for each buffer
  std::pmr::unsynchronized_pool_resource entries_;
  ByEnd by_end_{&entries_};                                                // end -> begin
  std::pmr::set<std::pair<std::size_t, std::size_t>> by_size_{&entries_};  // (bytes, begin)
  std::size_t total_ = 0;
};

/// Sorts indices of lifetimes by a step of each, stably.
void sort_by(int Lifetime::*step, const std::vector<Lifetime>& lifetimes, std::vector<std::size_t>& order) {
  std::vector<std::size_t> places;  // per step: the place of its next lifetime
  for (const Lifetime& lifetime : lifetimes) {
    const auto after = static_cast<std::size_t>(lifetime.*step) + 1;
    if (places.size() <= after) places.resize(after + 1, 0);
    ++places[after];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<std::size_t> sorted(order.size());
  for (const std::size_t i : order) sorted[places[static_cast<std::size_t>(lifetimes[i].*step)]++] = i;
  order = std::move(sorted);
}

/// Places buffers in order of their first step, each in the smallest gap that holds it (best fit).
Offsets best_fit(const std::vector<Lifetime>& lifetimes, bool reuse) {
  Offsets offsets;
  offsets.of.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_before = [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes != lifetimes[b].bytes ? lifetimes[a].bytes > lifetimes[b].bytes : a < b;
  };
  sort_by(&Lifetime::first, lifetimes, order);
  for (auto begin = order.begin(); begin != order.end();) {
    const int step = lifetimes[*begin].first;
    const auto end = std::find_if(begin, order.end(), [&](std::size_t i) { return lifetimes[i].first != step; });
    std::sort(begin, end, is_before);
    begin = end;
  }
  Gaps gaps;
  std::vector<std::size_t> ending = order;  // by last step; buffers with the same last step in the order of placement
  sort_by(&Lifetime::last, lifetimes, ending);
  auto ended = ending.begin();
  for (std::size_t i : order) {
    // A buffer never ends before it is placed, so all buffers that have ended are placed.
    for (; reuse && lifetimes[*ended].last < lifetimes[i].first; ++ended)
      if (lifetimes[*ended].bytes > 0) gaps.give_back(offsets.of[*ended], round_up(lifetimes[*ended].bytes, 64));
    if (lifetimes[i].bytes > 0) offsets.of[i] = gaps.take(round_up(lifetimes[i].bytes, 64));
  }
  offsets.total = gaps.total();
  return offsets;
}

/// The steps at which a buffer is alive.
struct Span {
  int first, last;
};

/// Buffers at their offsets. Buffers that occupy the same bytes at different times form a shelf. The buffers of a plan
/// have few different sizes, so a search examines few shelves instead of many buffers.
class Shelves {
 public:
  /// Places a buffer at the lowest offset that is free throughout its life.
  std::size_t place(std::size_t bytes, Span own) {
    std::size_t offset = 0;
    for (const Shelf& shelf : shelves_) {
      if (shelf.whole.last < own.first || own.last < shelf.whole.first) continue;
      if (shelf.begin >= offset + bytes) break;
      if (shelf.end > offset && is_used(shelf, own)) offset = shelf.end;
    }
    add(offset, offset + bytes, own);
    return offset;
  }

 private:
  struct Shelf {
    std::size_t begin, end;  // in the arena
    Span whole;              // from the first step to the last step of all its buffers
    std::uint32_t spans;     // the index of its list of spans; 0 if it holds a single buffer
  };

  static bool ends_before(const Span& span, int step) { return span.last < step; }

  bool is_used(const Shelf& shelf, Span own) const {
    if (shelf.spans == 0) return true;
    const std::vector<Span>& spans = spans_[shelf.spans];
    return std::lower_bound(spans.begin(), spans.end(), own.first, ends_before)->first <= own.last;
  }

  void add(std::size_t begin, std::size_t end, Span own) {
    const auto is_before = [&](const Shelf& shelf) {
      return shelf.begin != begin ? shelf.begin < begin : shelf.end < end;
    };
    const auto found = std::partition_point(shelves_.begin(), shelves_.end(), is_before);
    if (found == shelves_.end() || found->begin != begin || found->end != end) {
      shelves_.insert(found, {begin, end, own, 0});
      return;
    }
    if (found->spans == 0) {
      found->spans = static_cast<std::uint32_t>(spans_.size());
      spans_.push_back({found->whole});
    }
    std::vector<Span>& spans = spans_[found->spans];
    spans.insert(std::lower_bound(spans.begin(), spans.end(), own.first, ends_before), own);
    found->whole = {spans.front().first, spans.back().last};
  }

  std::vector<Shelf> shelves_;                // sorted by begin, then by end
  std::vector<std::vector<Span>> spans_{{}};  // per shelf with several buffers, in order of steps
};

/// Places the buffers in this order. Each gets the lowest offset that is free throughout its life.
Offsets placed_in_order(const std::vector<Lifetime>& lifetimes, const std::vector<std::size_t>& order) {
  Offsets offsets;
  offsets.of.assign(lifetimes.size(), 0);
  Shelves shelves;
  for (const std::size_t i : order) {
    const std::size_t bytes = round_up(lifetimes[i].bytes, 64);
    if (bytes == 0) continue;
    offsets.of[i] = shelves.place(bytes, {lifetimes[i].first, lifetimes[i].last});
    offsets.total = std::max(offsets.total, offsets.of[i] + bytes);
  }
  return offsets;
}

}  // namespace

std::size_t most_alive(const std::vector<Lifetime>& lifetimes) {
  int last = 0;
  for (const Lifetime& lifetime : lifetimes) last = std::max(last, lifetime.last);
  std::vector<std::int64_t> changes(static_cast<std::size_t>(last) + 2, 0);  // per step
  for (const Lifetime& lifetime : lifetimes) {
    const auto bytes = static_cast<std::int64_t>(round_up(lifetime.bytes, 64));
    changes[lifetime.first] += bytes;
    changes[static_cast<std::size_t>(lifetime.last) + 1] -= bytes;
  }
  std::int64_t alive = 0, most = 0;
  for (const std::int64_t change : changes) most = std::max(most, alive += change);
  return static_cast<std::size_t>(most);
}

Offsets assign_offsets(const std::vector<Lifetime>& lifetimes, bool reuse, std::size_t enough) {
  constexpr double most_pairs = 2e7;
  constexpr int most_tries = 200;
  constexpr double most_bytes = 0x1p62;  // for larger arenas, which no machine has, the sums could overflow
  Offsets best = best_fit(lifetimes, reuse);
  double all_bytes = 0;
  for (const Lifetime& lifetime : lifetimes) all_bytes += static_cast<double>(lifetime.bytes) + 64;
  if (!reuse || all_bytes > most_bytes || best.total <= enough) return best;
  const std::size_t least = std::max(enough, most_alive(lifetimes));
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto larger = [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; };
  std::stable_sort(order.begin(), order.end(), larger);
  const auto count = static_cast<double>(lifetimes.size());
  for (int tries = 0; tries < most_tries && count * count * (tries + 1) < most_pairs && best.total > least; ++tries) {
    Offsets offsets = placed_in_order(lifetimes, order);
    const auto ends_last = [&](std::size_t i) {
      return offsets.of[i] + round_up(lifetimes[i].bytes, 64) == offsets.total;
    };
    const auto top = std::find_if(order.begin(), order.end(), ends_last);
    if (top == order.end() || top == order.begin()) break;
    const std::size_t total = offsets.total;
    std::rotate(order.begin(), top, top + 1);
    if (total < best.total) best = std::move(offsets);
  }
  return best;
}

}  // namespace xtape
