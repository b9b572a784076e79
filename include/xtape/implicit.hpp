/// Values that equations define. Their derivatives follow from the equation, not from the steps that solve it.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/linear_solve.hpp"
#include "xtape/tape.hpp"

namespace xtape {

struct RootOptions {
  double rtol = 1e-6;            ///< Newton's method ends if its step is at most rtol |x|,
  double atol = 1e-6;            ///< or |f(x)| before the step is at most atol.
  std::int64_t max_steps = 50;   ///< For Newton's method.
  LinearSolveOptions linear = {};  ///< The systems with the Jacobian of f: of each step, and of derivatives.
  /// Records the root from the guess, in place of Newton's method. Its ops need no gradients.
  std::function<Vars(const Vars& guess)> solver = {};
};

/// Records x with f(x) = 0, found from `guess`. `f` gives arrays of the types of x, and may use any vars of the tape.
/// The derivatives of x by these vars are those of the implicit function theorem: one linear system, by products with
/// the Jacobian of f (Christianson, 1994, Reverse accumulation and attractive fixed points; Blondel et al., 2022,
/// Efficient and modular implicit differentiation). They are of any order and in both modes. The guess has no gradient.
///
/// Newton's method starts from the guess. If it does not end within max_steps, x is NaN.
///
/// Throws Error without a function or guess, if f draws random numbers, and for options out of range; DtypeError unless
/// the guess has one float dtype; ShapeError if f or the solver gives other types than the guess; HandleError for vars
/// of another tape. Then nothing stays recorded.
Vars implicit_root(const std::function<Vars(const Vars&)>& f, const Vars& guess, const RootOptions& options = {},
                   Caller caller = Caller::here());
/// The same for one array.
Var implicit_root(const std::function<Var(const Var&)>& f, const Var& guess, const RootOptions& options = {},
                  Caller caller = Caller::here());

struct FixedPointOptions {
  double rtol = 1e-6;              ///< Iteration ends if |g(x) - x| is at most the larger of rtol |g(x)| and atol.
  double atol = 1e-9;
  std::int64_t max_steps = 1000;
  LinearSolveOptions linear = {};  ///< The systems of derivatives, with the identity minus the Jacobian of g.
};

/// Records x with g(x) = x, by iteration from `guess`. Derivatives as for implicit_root, and so are the errors. If the
/// iteration does not end within max_steps, x is NaN.
Vars fixed_point(const std::function<Vars(const Vars&)>& g, const Vars& guess, const FixedPointOptions& options = {},
                 Caller caller = Caller::here());
/// The same for one array.
Var fixed_point(const std::function<Var(const Var&)>& g, const Var& guess, const FixedPointOptions& options = {},
                Caller caller = Caller::here());

}  // namespace xtape
