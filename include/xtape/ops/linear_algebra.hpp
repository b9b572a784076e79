/// Linear algebra of float matrices, which are the last two axes of arrays. All other axes are batch axes. The names
/// are those of NumPy's and PyTorch's linalg. Definitions use the same names without `linalg`. One thread computes
/// each matrix. The bits of the results depend neither on the number of threads nor on the processor, if it has fused
/// multiply-adds.
///
/// All functions are differentiable any number of times, unless stated otherwise. If a matrix has no result because it
/// is singular or not positive definite, playing throws Error with the line and the index of the matrix in the batch.
/// With `check` false, the result is NaN or infinite instead. The factors of a matrix that contains NaN or infinity are
/// NaN. Recording throws the same errors as the functions of ops.hpp. For products of several matrices (multi_dot), use
/// einsum: "ab,bc,cd->ad".
#pragma once

#include <cstdint>
#include <string>

#include "xtape/tape.hpp"

namespace xtape {
namespace linalg {

/// The lower triangular L [..., n, n] with L Lᵀ = A for a positive definite A. cholesky uses (A + Aᵀ) / 2 in place of
/// A. The gradient is that of Murray, 2016, Differentiation of the Cholesky decomposition.
Var cholesky(const Argument& a, bool check = true);

struct TriangularOptions {
  bool upper = false;  ///< Whether A is upper triangular instead of lower triangular. The other triangle is not read.
  bool transposed = false;     ///< Whether to solve Aᵀ X = B.
  bool unit_diagonal = false;  ///< Whether the diagonal counts as 1 and is not read.
  bool check = true;
};
/// X with A X = B for a triangular A [..., n, n] and B [..., n, k]. A has the same batch axes as B, or no batch axes.
Var triangular_solve(const Argument& a, const Var& b, const TriangularOptions& options = {});
/// X with L Lᵀ X = B for L [..., n, n] from `cholesky` and B [..., n, k].
Var cholesky_solve(const Argument& l, const Var& b, bool check = true);

/// A[..., permutation[i], j] = (L U)[..., i, j] for A [..., n, n]. The lower triangle of `lu` contains L, whose
/// diagonal is 1. The upper triangle contains U. `permutation` is int64 [..., n]. `sign` [...] is the sign of the
/// determinant: -1, 0 or 1.
struct Lu {
  Var lu, permutation, sign;
};
Lu lu(const Argument& a, bool check = true);
/// X with A X = B for A [..., n, n]. B is [..., n, k], or a vector [n] as in NumPy. Batches broadcast.
Var solve(const Argument& a, const Var& b, bool check = true);
Var inv(const Argument& a, bool check = true);  ///< A⁻¹, for A [..., n, n].
/// The determinants [...]. The gradient, the matrix of cofactors, and its derivative exist for singular matrices, too.
Var det(const Argument& a);
/// The sign of det A and log |det A|, both [...]. For a singular matrix, they are 0 and -inf. No gradient flows through
/// the sign.
struct SignLogDet {
  Var sign, logabsdet;
};
SignLogDet slogdet(const Argument& a);

/// A = Q R for A [..., m, n], with Q [..., m, k], R [..., k, n] upper triangular, k = min(m, n). The signs are those of
/// LAPACK. The gradient is that of Walter and Lehmann, 2018, and Liao et al., 2019. It is infinite or NaN where the
/// first k columns of A are linearly dependent.
struct Qr {
  Var q, r;
};
Qr qr(const Argument& a);

/// A = V diag(w) Vᵀ with the eigenvalues w [..., n] in ascending order and the eigenvectors V [..., n, n] as columns.
/// eigh uses (A + Aᵀ) / 2 in place of A. The first element of an eigenvector with at least 0.3 times its largest
/// magnitude is positive. The gradient through the eigenvectors divides by differences of eigenvalues. It is NaN or
/// infinite where two eigenvalues are equal, as in JAX and PyTorch. The gradient through the eigenvalues alone is
/// always finite.
struct Eigh {
  Var eigenvalues, eigenvectors;
};
Eigh eigh(const Argument& a, bool check = true);

/// A = U diag(s) Vh for A [..., m, n], with U [..., m, k], s [..., k] descending, Vh [..., k, n], k = min(m, n). The
/// gradient through U and Vh is NaN or infinite where two singular values are equal, or where a singular value is 0 and
/// A is not square. The gradient through s alone is always finite.
struct Svd {
  Var u, s, vh;
};
Svd svd(const Argument& a, bool check = true);

/// The pseudoinverse [..., n, m] of A [..., m, n]. Singular values of at most rtol times the largest singular value are
/// treated as 0. A negative rtol means max(m, n) times the precision of the dtype. The gradient assumes a constant rank
/// (Golub and Pereyra, 1973).
Var pinv(const Argument& a, double rtol = -1);
/// The X [..., n, k] of least norm that minimises |A X - B|. This X is pinv(A) B. B is [..., m, k], or a vector [m].
Var lstsq(const Argument& a, const Var& b, double rtol = -1);
/// The number of singular values above rtol times the largest singular value, int64 [...]. Not differentiable.
Var matrix_rank(const Argument& a, double rtol = -1);

/// The norm of A, [...]. `ord` is "fro" (root of the sum of squares), "nuc" (sum of singular values), "2" (largest
/// singular value), "1" (largest sum of magnitudes of a column) or "inf" (largest sum of magnitudes of a row).
Var matrix_norm(const Argument& a, const std::string& ord = "fro");
Var matrix_power(const Argument& a, std::int64_t n);  ///< The n-th power of A. For n < 0, the power of the inverse.
Var trace(const Argument& a);                         ///< The sum [...] of the diagonal of A [..., m, n].
Var outer(const Argument& a, const Var& b);           ///< [..., m, n] from a [..., m] and b [..., n]: a_i b_j.
Var kron(const Argument& a, const Var& b);  ///< The Kronecker product [..., m p, n q] of [..., m, n] and [..., p, q].

}  // namespace linalg
}  // namespace xtape
