/// Matrix-free solvers of linear systems. A function gives the products with the matrix.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

struct LinearSolveOptions {
  /// Whether the matrix is symmetric and positive definite. If true, conjugate gradients solve the system, otherwise
  /// GMRES.
  bool positive_definite = false;
  /// The iteration stops if the norm of the recursively updated residual b - A x is at most max(rtol * |b|, atol).
  double rtol = 1e-6;
  double atol = 0;
  std::int64_t max_steps = 0;  ///< The most products with the matrix. 0 means ten per unknown, at most a million.
  std::int64_t restart = 30;   ///< GMRES restarts after this many directions.
};

/// Records the solution x of A x = b. `product` takes v and records A v. It must be linear in v, and may use any vars
/// of the tape. b, v and x are lists of arrays of the same types. linear_solve computes only products with A, never A
/// itself.
///
/// Implicit differentiation gives the derivatives with respect to b and to the vars that `product` uses. Each
/// derivative costs one more solve. Reverse mode solves with the transposed matrix. `vmap` solves one system per
/// example.
///
/// Conjugate gradients: Hestenes and Stiefel, 1952. GMRES: Saad and Schultz, 1986, in the form of Jiranek and
/// Rozloznik, 2010, Adaptive version of Simpler GMRES, which needs no least squares. If max_steps do not solve a
/// system, its solution is NaN. The solution is also NaN if the recomputed residual exceeds both ten times the
/// tolerance and sqrt(eps) * |b|. Causes are an ill-conditioned matrix, a NaN in the system, or a `product` that is not
/// linear.
///
/// Throws DtypeError if the arrays of b do not share one float dtype, ShapeError if a product has another type than b,
/// HandleError if a var belongs to another tape. Throws Error if `product` or b is empty, `product` draws random
/// numbers, or an option is out of range. After an error, nothing stays recorded.
Vars linear_solve(const std::function<Vars(const Vars&)>& product, const Vars& b,
                  const LinearSolveOptions& options = {}, Caller caller = Caller::here());
/// The same for a system of one array.
Var linear_solve(const std::function<Var(const Var&)>& product, const Var& b, const LinearSolveOptions& options = {},
                 Caller caller = Caller::here());

}  // namespace xtape
