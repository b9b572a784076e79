// Constants of equally spaced numbers.
#include <algorithm>
#include <cmath>

#include "base/arrays/visit.hpp"
#include "tape/calls.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
constexpr std::uint64_t most_elements = 1'000'000'000'000'000;

/// Returns a constant of the elements element(0), element(1) …
template <class Element>
Var constant_of(Tape tape, Dtype dtype, std::int64_t count, const Element& element, const Caller& caller) {
  Array values(dtype, {count});
  visit_elements(values, [&]<class T>(T* elements) {
    for (std::int64_t i = 0; i < count; ++i) elements[i] = element(i).template as<T>();
  });
  return tape.constant(values, caller);
}

/// The integers start, start + step …, before stop. The distance of two int64 numbers may not fit in int64.
struct Integers {
  std::uint64_t start, distance, step;  // `distance` and `step` are absolute values
  bool down;

  Integers(std::int64_t first, std::int64_t stop, std::int64_t by)
      : start(static_cast<std::uint64_t>(first)), step(static_cast<std::uint64_t>(by)), down(by < 0) {
    const bool none = down ? stop >= first : stop <= first;
    distance = static_cast<std::uint64_t>(stop) - start;
    if (down) distance = -distance, step = -step;
    if (none) distance = 0;
  }
  std::uint64_t count() const { return distance / step + (distance % step != 0 ? 1 : 0); }
  Literal operator()(std::int64_t i) const {
    const std::uint64_t way = static_cast<std::uint64_t>(i) * step;
    return static_cast<std::int64_t>(down ? start - way : start + way);
  }
};

/// Like Integers, for float64 numbers.
struct Reals {
  double start, stop, step;

  std::uint64_t count() const {
    const double steps = std::ceil((stop - start) / step);
    return steps <= 0                                   ? 0
           : steps < static_cast<double>(most_elements) ? static_cast<std::uint64_t>(steps)
                                                        : most_elements;
  }
  Literal operator()(std::int64_t i) const { return start + static_cast<double>(i) * step; }
};
}  // namespace

Var arange(Tape tape, const Literal& start, const Literal& stop, const Literal& step, std::optional<Dtype> dtype,
           Caller caller) {
  const auto of = [&](const auto& numbers, Dtype found) {
    const std::uint64_t count = numbers.count();
    if (count >= most_elements)
      throw Error("arange: from " + to_string(start) + " to " + to_string(stop) + " by " + to_string(step) +
                  " are too many numbers");
    const auto n = static_cast<std::int64_t>(count);
    for (const std::int64_t i : {std::int64_t{0}, n - 1})
      if (n > 0) require_fits(numbers(i), found, "arange: the element");
    return constant_of(tape, found, n, numbers, caller);
  };
  return as_call(tape, nullptr, caller, [&] {
    if (step.real() == 0) throw Error("arange: the step is 0");
    if (start.is_whole() && stop.is_whole() && step.is_whole())
      return of(Integers(start.integer(), stop.integer(), step.integer()), dtype.value_or(Dtype::int64));
    return of(Reals{start.real(), stop.real(), step.real()}, dtype.value_or(tape.default_dtype()));
  });
}
Var arange(Tape tape, const Literal& stop, Caller caller) {
  return arange(tape, 0, stop, 1, std::nullopt, caller);
}
Var linspace(Tape tape, double start, double stop, std::int64_t steps, std::optional<Dtype> dtype, Caller caller) {
  return as_call(tape, nullptr, caller, [&] {
    const Dtype found = dtype.value_or(tape.default_dtype());
    if (!is_floating(found)) throw DtypeError(std::string("linspace: the dtype is a float's, not ") + name_of(found));
    if (steps < 0) throw Error("linspace: " + std::to_string(steps) + " steps");
    const auto element = [&](std::int64_t i) {
      const double part = static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(steps - 1, 1));
      return Literal(i < steps - 1 || steps == 1 ? start + (stop - start) * part : stop);
    };
    return constant_of(tape, found, steps, element, caller);
  });
}

}  // namespace xtape
