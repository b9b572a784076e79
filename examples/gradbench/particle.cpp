// A particle between two charges. The search finds the position of one charge for which the particle lands at the
// origin. The particle's path follows the gradient of a potential, and the search uses the derivative of the path.
#include "descent.hpp"

namespace gradbench {

namespace {
/// Returns the square of the position where the particle crosses the axis, with the first charge moved by w [1].
Var landing(const Var& w, const Gradient& gradient) {
  Tape tape = w.tape();
  const Var none = zeros(tape, {1});
  const Vars charges = {concat({none + 10, 10 - w}), concat({none + 10, none})};
  const Objective potential = [&](const Var& x) {
    const auto near = [&](const Var& charge) { return 1 / sqrt(sum(square(x - charge))); };
    return near(charges[0]) + near(charges[1]);
  };
  const double dt = 0.1;
  const auto above = [&](const Vars& s) { return (s[0] + dt * s[1]).at(1) > 0; };
  const auto step = [&](const Vars& s) { return Vars{s[0] + dt * s[1], s[1] - dt * gradient(potential, s[0])}; };
  const Vars last = while_loop(above, step, {tape.constant({0.0, 8.0}), tape.constant({0.75, 0.0})}, 1000).states;
  const Var x = last[0] + dt * last[1];
  return square((x - x.at(1) / last[1].at(1) * last[1]).at(0));
}
}  // namespace

Functions particle() {
  const auto search = [](const Gradient& outer, const Gradient& inner) {
    return [=](Input& in) {
      return argmin([&](const Var& w) { return landing(w, inner); }, outer, reshape(in.array("w"), {1})).at(0);
    };
  };
  return {{"rr", search(reverse, reverse)},
          {"rf", search(reverse, forward)},
          {"fr", search(forward, reverse)},
          {"ff", search(forward, forward)}};
}

}  // namespace gradbench
