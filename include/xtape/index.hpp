/// Indices of Var::at. They have the meaning of indices in brackets in NumPy and PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace xtape {

class Argument;
class Axes;
class Var;

inline constexpr std::int64_t open_end = std::numeric_limits<std::int64_t>::max();  ///< As a stop, means no stop.

/// start:stop:step along one axis, as in Python. Negative numbers count from the back. A stop beyond the end is
/// clipped. Steps can be negative.
struct Slice {
  explicit Slice(std::int64_t first, std::int64_t last = open_end, std::int64_t by = 1)
      : start(first), stop(last), step(by) {}
  std::int64_t start, stop, step;
};

/// The index of an axis in Var::at. A number selects one element and drops the axis. A Slice selects a part. `all`
/// selects the complete axis. "..." stands for all axes without an index. A null pointer, like NumPy's newaxis, adds an
/// axis of size 1.
class Index {
 public:
  enum class Kind : std::uint8_t { none, place, slice, new_axis, rest };

  Index() = default;  ///< No index.
  template <class T, class = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>>
  Index(T place) : kind_(Kind::place), slice_(static_cast<std::int64_t>(place)) {}  // NOLINT: converts by intent
  Index(const Slice& slice) : kind_(Kind::slice), slice_(slice) {}                  // NOLINT: converts by intent
  Index(Var (*)(const Argument&, const Axes&, bool)) : kind_(Kind::slice) {}  // NOLINT: the function `all`, by its name
  Index(std::nullptr_t) : kind_(Kind::new_axis) {}                            // NOLINT: converts by intent
  Index(const char* dots);  ///< "...". Throws Error for any other text. NOLINT

  Kind kind() const { return kind_; }
  const Slice& slice() const { return slice_; }  ///< A number is stored as the start.

 private:
  Kind kind_ = Kind::none;
  Slice slice_{0};
};

}  // namespace xtape
