#include "xtape/implicit.hpp"

#include <cmath>
#include <utility>

#include "ops/recording/enclosed.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/custom_gradient.hpp"
#include "xtape/grad.hpp"
#include "xtape/loops.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
using Function = std::function<Vars(const Vars&)>;

/// Returns the squared norm of all arrays together, [].
Var square_norm(const Vars& vars) {
  Var total = sum(square(vars[0]));
  for (std::size_t i = 1; i < vars.size(); ++i) total = total + sum(square(vars[i]));
  return total;
}

Vars difference(const Vars& a, const Vars& b) {
  Vars found;
  for (std::size_t i = 0; i < a.size(); ++i) found.push_back(a[i] - b[i]);
  return found;
}

Vars nan_unless(const Var& condition, Vars vars) {
  for (Var& var : vars) var = where(condition, var, std::nan(""));
  return vars;
}

/// Returns the states without the last one.
Vars without_last(const Vars& states) {
  return {states.begin(), states.end() - 1};
}
Vars with_last(Vars states, const Var& last) {
  states.push_back(last);
  return states;
}

/// Returns the results of `solver` with the derivatives of a root of `f`.
Vars with_root_gradient(const std::string& name, const Function& f, const Vars& guess, const Function& solver,
                        const LinearSolveOptions& linear) {
  const Tape tape = guess[0].tape();
  const std::vector<ValueType> types = types_of(guess);
  const Enclosed body = enclosed(tape, types, [&](const Vars& x) {
    const Vars residuals = f(x);
    require_types(name + ": the function", residuals, types);
    return residuals;
  });
  if (draws(*body.body))
    throw Error(name + ": the function draws random numbers, which differ from step to step: draw them outside");
  const auto solve = [&](const Vars&) {
    const Vars root = solver(guess);
    require_types(name + ": the solver", root, types);
    return root;
  };
  if (body.captured.empty()) {
    Vars root = solve({});
    for (Var& each : root) each = stop_gradient(each);
    return root;
  }
  const auto rule = [&](const Vars& captured, const Vars& x, const Vars& cotangents) {
    Vars inputs = x, wanted;
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    for (const Var& each : captured)
      if (is_floating(each.dtype())) wanted.push_back(each);
    const Vars residuals = inline_body(tape, *body.body, inputs);
    GradOptions zeros_too, unused_too;
    zeros_too.materialize_grads = true;
    unused_too.allow_unused = true;
    const auto back = [&](const Vars& v) { return grad(residuals, x, v, zeros_too); };
    Vars minus;
    for (const Var& each : linear_solve(back, cotangents, linear)) minus.push_back(-each);
    Vars gradients(captured.size());
    if (wanted.empty()) return gradients;
    const Vars found = grad(residuals, wanted, minus, unused_too);
    for (std::size_t i = 0, next = 0; i < captured.size(); ++i)
      if (is_floating(captured[i].dtype())) gradients[i] = found[next++];
    return gradients;
  };
  return custom_gradient(solve, rule, body.captured);
}

/// Repeats `step`, which returns the next x and whether this x is the last one. The result is NaN if `step` returns no
/// last x within max_steps steps. The states of the loop are x and whether the loop continues.
Vars iterated(const std::function<std::pair<Vars, Var>(const Vars& x)>& step, const Vars& guess,
              std::int64_t max_steps) {
  const auto body = [&](const Vars& states) {
    auto [next, is_last] = step(without_last(states));
    return with_last(next, ~is_last);
  };
  const auto goes_on = [](const Vars& states) { return states.back(); };
  const Var begins = full(guess[0].tape(), {}, true, Dtype::boolean);
  const Vars states = while_loop(goes_on, body, with_last(guess, begins), max_steps).states;
  return nan_unless(~states.back(), without_last(states));
}

/// Returns whether the change to x is small relative to x.
Var is_small(const Vars& change, const Vars& x, double rtol, double atol) {
  const Var bound = maximum(rtol * rtol * square_norm(x), atol * atol);
  return less_equal(square_norm(change), bound) & less(bound, INFINITY);
}

Vars by_newton(const Function& f, const Vars& guess, const RootOptions& options) {
  const auto step = [&](const Vars& x) {
    const Vars residuals = f(x);
    const auto forward = [&](const Vars& v) { return jvp(residuals, x, v); };
    const Vars change = linear_solve(forward, residuals, options.linear), next = difference(x, change);
    const Var is_root = less_equal(square_norm(residuals), options.atol * options.atol);
    return std::make_pair(next, is_root | is_small(change, next, options.rtol, 0));
  };
  return iterated(step, guess, options.max_steps);
}

Vars by_iteration(const Function& g, const Vars& guess, const FixedPointOptions& options) {
  const auto step = [&](const Vars& x) {
    const Vars next = g(x);
    return std::make_pair(next, is_small(difference(next, x), next, options.rtol, options.atol));
  };
  return iterated(step, guess, options.max_steps);
}

void check_arguments(const char* name, const Function& function, const Vars& guess, double rtol, double atol,
                     std::int64_t max_steps) {
  const std::string begin = std::string(name) + ": ";
  if (!function) throw Error(begin + "the function is empty");
  if (guess.empty()) throw Error(begin + "needs a guess");
  if (!(rtol >= 0) || !(atol >= 0)) throw Error(begin + "rtol and atol must not be negative");
  if (max_steps < 1) throw Error(begin + "max_steps must be at least 1, got " + std::to_string(max_steps));
  for (const Var& each : guess) {
    if (each.tape() != guess[0].tape()) throw HandleError(begin + "the guess is of different tapes");
    if (!is_floating(each.dtype()) || each.dtype() != guess[0].dtype())
      throw DtypeError(begin + "the arrays of the guess must have one float dtype, got " + to_string(guess[0].type()) +
                       (each.type() == guess[0].type() ? "" : " and " + to_string(each.type())));
  }
}

Function of_lists(const std::function<Var(const Var&)>& function) {
  if (!function) return {};
  return [function](const Vars& x) { return Vars{function(x[0])}; };
}
}  // namespace

Vars implicit_root(const Function& f, const Vars& guess, const RootOptions& options, Caller caller) {
  return at_place(caller, [&] {
    check_arguments("implicit_root", f, guess, options.rtol, options.atol, options.max_steps);
    return all_or_nothing(guess[0].tape(), &custom_gradient_op(), caller, [&] {
      const Function newton = [&](const Vars& start) { return by_newton(f, start, options); };
      return with_root_gradient("implicit_root", f, guess, options.solver ? options.solver : newton, options.linear);
    });
  });
}
Var implicit_root(const std::function<Var(const Var&)>& f, const Var& guess, const RootOptions& options,
                  Caller caller) {
  return implicit_root(of_lists(f), Vars{guess}, options, caller)[0];
}

Vars fixed_point(const Function& g, const Vars& guess, const FixedPointOptions& options, Caller caller) {
  return at_place(caller, [&] {
    check_arguments("fixed_point", g, guess, options.rtol, options.atol, options.max_steps);
    return all_or_nothing(guess[0].tape(), &custom_gradient_op(), caller, [&] {
      const auto residual = [&](const Vars& x) {
        const Vars next = g(x);
        require_types("fixed_point: the function", next, types_of(guess));
        return difference(x, next);
      };
      const auto iterate = [&](const Vars& start) { return by_iteration(g, start, options); };
      return with_root_gradient("fixed_point", residual, guess, iterate, options.linear);
    });
  });
}
Var fixed_point(const std::function<Var(const Var&)>& g, const Var& guess, const FixedPointOptions& options,
                Caller caller) {
  return fixed_point(of_lists(g), Vars{guess}, options, caller)[0];
}

}  // namespace xtape
