/// Gradient descent as an expression, so that derivatives pass through all of its steps.
#pragma once

#include "gradbench.hpp"

namespace gradbench {

using Objective = std::function<Var(const Var&)>;  ///< Maps x [n] to a number.
using Gradient = std::function<Var(const Objective&, const Var&)>;

/// The gradients in reverse and forward mode. Both differentiate with respect to a view of x that only the argument of
/// f reads. If f also uses x in another way, the gradient does not pass through this use.
inline Var reverse(const Objective& f, const Var& x) {
  const Var at = reshape(x, x.shape());
  return grad(f(at), at);
}
inline Var forward(const Objective& f, const Var& x) {
  JacobianOptions options;
  options.mode = JacobianMode::forward;
  const Var at = reshape(x, x.shape());
  return jacobian(f(at), at, options);
}

/// Finds the minimiser of f from `start` with the algorithm of GradBench's gd.hpp. The step size doubles after ten
/// successful steps and halves after a failed one.
inline Var argmin(const Objective& f, const Gradient& gradient, const Var& start) {
  Tape tape = start.tape();
  const Var zero = zeros(tape, {});
  const Vars first = {start, f(start), gradient(f, start), zero + 1e-5, zero, zero > 0};
  const auto goes_on = [](const Vars& s) { return (sqrt(sum(square(s[2]))) > 1e-5) & ~s[5]; };
  const auto step = [&](const Vars& s) {
    const Var ten = s[4] == 10, rate = where(ten, 2 * s[3], s[3]), before = where(ten, 0, s[4]);
    const Var x = s[0] - rate * s[2], value = f(x), slope = gradient(f, x);
    const Var near = sqrt(sum(square(x - s[0]))) <= 1e-5, down = (value < s[1]) & ~near;
    return Vars{where(down, x, s[0]),        where(down, value, s[1]),   where(down, slope, s[2]),
                where(down, rate, rate / 2), where(down, before + 1, 0), near};
  };
  return while_loop(goes_on, step, first, 1000).states[0];
}

}  // namespace gradbench
