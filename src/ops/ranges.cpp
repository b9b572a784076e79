// Constants of equally spaced numbers.
#include <algorithm>
#include <cmath>

#include "calls.hpp"
#include "visit.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
constexpr double most_elements = 1e15;

/// A constant of the elements element(0), element(1) … as computed in double.
template <class Element>
Var constant_of(Tape tape, Dtype dtype, std::int64_t count, const Element& element, const Caller& caller) {
  Array values(dtype, {count});
  visit_elements(values, [&]<class T>(T* elements) {
    for (std::int64_t i = 0; i < count; ++i) elements[i] = element(i).template as<T>();
  });
  return tape.constant(values, caller);
}
}  // namespace

Var arange(Tape tape, const Literal& start, const Literal& stop, const Literal& step, std::optional<Dtype> dtype,
           Caller caller) {
  return as_call(tape, nullptr, caller, [&] {
    const bool whole = start.is_whole() && stop.is_whole() && step.is_whole();
    const Dtype found = dtype.value_or(whole ? Dtype::int64 : tape.default_dtype());
    if (step.real() == 0) throw Error("arange: the step is 0");
    const double count = std::ceil((stop.real() - start.real()) / step.real());
    if (!(count < most_elements))
      throw Error("arange: from " + to_string(start) + " to " + to_string(stop) + " by " + to_string(step) +
                  " are too many numbers");
    const auto n = static_cast<std::int64_t>(std::max(count, 0.0));
    const auto element = [&](std::int64_t i) {
      const auto wraps = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };  // between the bounds
      return whole ? Literal(static_cast<std::int64_t>(wraps(start.integer()) + wraps(i) * wraps(step.integer())))
                   : Literal(start.real() + static_cast<double>(i) * step.real());
    };
    for (const std::int64_t i : {std::int64_t{0}, n - 1})
      if (n > 0) require_fits(element(i), found, "arange: the element");
    return constant_of(tape, found, n, element, caller);
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
