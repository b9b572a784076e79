/// Random choices that are the same on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace xtape::fuzz {

/// A hash of a number (the finaliser of SplitMix64).
inline std::uint64_t mixed(std::uint64_t bits) {
  bits += 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mixed(seed)) {}

  std::uint64_t bits() { return mixed(state_++); }
  /// A number in [0, bound); 0 if `bound` is 0.
  std::int64_t below(std::int64_t bound) {
    return bound <= 0 ? 0 : static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(bound));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  /// An element of the list, which must not be empty.
  template <class List>
  const auto& pick(const List& list) {
    return *(list.begin() + below(static_cast<std::int64_t>(list.size())));
  }
  template <class T>
  const T& pick(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<std::int64_t>(list.size())));
  }
  template <class List>
  void shuffle(List& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace xtape::fuzz
