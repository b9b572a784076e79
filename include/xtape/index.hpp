/// Indices of Var::at, as NumPy and PyTorch have them between brackets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace xtape {

class Argument;
class Axes;
class Var;

inline constexpr std::int64_t open_end = std::numeric_limits<std::int64_t>::max();  ///< As a stop: no stop.

/// start:stop:step along one axis, as in Python: negative numbers count from the back, a stop beyond the end is cut,
/// and steps may be negative.
struct Slice {
  explicit Slice(std::int64_t first, std::int64_t last = open_end, std::int64_t by = 1)
      : start(first), stop(last), step(by) {}
  std::int64_t start, stop, step;
};

/// What Var::at takes of an axis: a number takes one place and drops the axis, a Slice a part of it, `all` the whole
/// axis, and "..." as many whole axes as the other indices leave. A null pointer is NumPy's newaxis: a new axis of
/// size 1.
class Index {
 public:
  enum class Kind : std::uint8_t { none, place, slice, new_axis, rest };

  Index() = default;  ///< No index.
  template <class T, class = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>>
  Index(T place) : kind_(Kind::place), slice_(static_cast<std::int64_t>(place)) {}  // NOLINT: converts by intent
  Index(const Slice& slice) : kind_(Kind::slice), slice_(slice) {}                  // NOLINT: converts by intent
  Index(Var (*)(const Argument&, const Axes&, bool)) : kind_(Kind::slice) {}  // NOLINT: the function `all`, by its name
  Index(std::nullptr_t) : kind_(Kind::new_axis) {}                            // NOLINT: converts by intent
  Index(const char* dots);  ///< "..."; throws Error for another text. NOLINT

  Kind kind() const { return kind_; }
  const Slice& slice() const { return slice_; }  ///< A place is its start.

 private:
  Kind kind_ = Kind::none;
  Slice slice_{0};
};

}  // namespace xtape
