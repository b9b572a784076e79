/// Systems of linear equations that are given by products with their matrix.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

struct LinearSolveOptions {
  /// The matrix is symmetric and positive definite: conjugate gradients solve the system. Otherwise GMRES does.
  bool positive_definite = false;
  /// The iteration ends if the residual |b - A x|, which it updates, is at most the larger of rtol * |b| and atol.
  double rtol = 1e-6;
  double atol = 0;
  std::int64_t max_steps = 0;  ///< Products with the matrix; 0: ten per unknown, at most a million.
  std::int64_t restart = 30;   ///< GMRES keeps this many directions, and begins anew after them.
};

/// Records the solution x of A x = b. `product` records A v; it must be linear in v, and may use any vars of the tape.
/// b, v and x are lists of arrays of the same types. Only products with A are computed, never A itself.
///
/// Derivatives by b and by the vars that `product` uses are those of the exact solution, each at the price of another
/// solve: with the transposed matrix in reverse mode. `vmap` solves one system per example.
///
/// Conjugate gradients: Hestenes and Stiefel, 1952. GMRES: Saad and Schultz, 1986, in the form of Jiranek and
/// Rozloznik, 2010, Adaptive version of Simpler GMRES, which needs no least squares. A system that is not solved within
/// max_steps gives NaN. So does one whose residual, computed anew, is above ten times the bound and above the root of
/// the dtype's precision times |b|: because of its condition, a NaN in it, or a product that is not linear.
///
/// Throws DtypeError unless all of b have one float dtype; ShapeError if the products have other types than b; Error
/// without a product or b, if the product draws random numbers, and for options out of range; HandleError for vars of
/// another tape. Then nothing stays recorded.
Vars linear_solve(const std::function<Vars(const Vars&)>& product, const Vars& b,
                  const LinearSolveOptions& options = {}, Caller caller = Caller::here());
/// The same for one array.
Var linear_solve(const std::function<Var(const Var&)>& product, const Var& b, const LinearSolveOptions& options = {},
                 Caller caller = Caller::here());

}  // namespace xtape
