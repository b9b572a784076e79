// Computes the saddle point min_x max_y f(x, y). Gradient descent solves both problems.
#include "descent.hpp"

namespace gradbench {

Functions saddle() {
  const auto search = [](const Gradient& outer, const Gradient& inner) {
    return [=](Input& in) {
      const Var start = in.array("start");
      const auto value = [](const Var& p, const Var& q) { return sum(square(p)) - sum(square(q)); };
      const auto highest = [&](const Var& p) {
        return argmin([&](const Var& q) { return -value(p, q); }, inner, start);
      };
      const Var p = argmin([&](const Var& at) { return value(at, highest(at)); }, outer, start);
      return concat({p, highest(p)});
    };
  };
  return {{"rr", search(reverse, reverse)},
          {"rf", search(reverse, forward)},
          {"fr", search(forward, reverse)},
          {"ff", search(forward, forward)}};
}

}  // namespace gradbench
