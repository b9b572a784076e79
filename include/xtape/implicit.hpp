/// Values that are defined by equations. Their derivatives follow from the equation, not from the steps of the solver.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/linear_solve.hpp"
#include "xtape/tape.hpp"

namespace xtape {

struct RootOptions {
  double rtol = 1e-6;              ///< Newton's method stops if its step is at most rtol |x|.
  double atol = 1e-6;              ///< Newton's method also stops if |f(x)| before the step is at most atol.
  std::int64_t max_steps = 50;     ///< The most steps of Newton's method.
  LinearSolveOptions linear = {};  ///< For the linear systems with the Jacobian of f, in steps and in derivatives.
  /// If not empty, this function records the root, starting from the guess. It replaces Newton's method. Its ops need
  /// no gradients.
  std::function<Vars(const Vars& guess)> solver = {};
};

/// Records x with f(x) = 0, starting from `guess`. `f` returns arrays of the types of x, and may use any vars of the
/// tape. The implicit function theorem gives the derivatives of x with respect to these vars, as the solution of one
/// linear system with the Jacobian of f (Christianson, 1994, Reverse accumulation and attractive fixed points; Blondel
/// et al., 2022, Efficient and modular implicit differentiation). The solver only computes products with the Jacobian.
/// Derivatives of any order are available, in both modes. The guess has no gradient.
///
/// Newton's method starts from the guess. If it does not converge within max_steps, x is NaN.
///
/// Throws Error if f or the guess is empty, f draws random numbers, or an option is out of range. Throws DtypeError if
/// the arrays of the guess do not share one float dtype, ShapeError if f or the solver returns other types than the
/// guess, HandleError if a var belongs to another tape. After an error, nothing stays recorded.
Vars implicit_root(const std::function<Vars(const Vars&)>& f, const Vars& guess, const RootOptions& options = {},
                   Caller caller = Caller::here());
/// The same for a single array.
Var implicit_root(const std::function<Var(const Var&)>& f, const Var& guess, const RootOptions& options = {},
                  Caller caller = Caller::here());

struct FixedPointOptions {
  double rtol = 1e-6;  ///< The iteration stops if |g(x) - x| is at most max(rtol |g(x)|, atol).
  double atol = 1e-9;
  std::int64_t max_steps = 1000;
  /// For the linear systems that give derivatives. Their matrix is the identity minus the Jacobian of g.
  LinearSolveOptions linear = {};
};

/// Records x with g(x) = x, by iteration from `guess`. Derivatives and errors are those of implicit_root. If the
/// iteration does not converge within max_steps, x is NaN.
Vars fixed_point(const std::function<Vars(const Vars&)>& g, const Vars& guess, const FixedPointOptions& options = {},
                 Caller caller = Caller::here());
/// The same for a single array.
Var fixed_point(const std::function<Var(const Var&)>& g, const Var& guess, const FixedPointOptions& options = {},
                Caller caller = Caller::here());

}  // namespace xtape
