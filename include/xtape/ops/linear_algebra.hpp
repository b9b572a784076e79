/// Linear algebra of matrices, which are the last two axes of arrays of floats; the axes before are a batch. Under the
/// names of NumPy's and PyTorch's linalg; in definitions, the same names without `linalg`. LAPACK computes each matrix
/// on one thread, so the same machine type gives the same bits for any number of threads.
///
/// All are differentiable any number of times, unless stated otherwise. A matrix that has no result (singular, not
/// positive definite) makes the play throw Error, which names the line and the matrix of the batch; with `check` false
/// the result is NaN or infinite. The factors of a matrix with a NaN or an infinity are NaN. They throw while recording
/// as the functions of ops.hpp do. Products of many matrices (multi_dot) are those of einsum: "ab,bc,cd->ad".
#pragma once

#include <cstdint>
#include <string>

#include "xtape/tape.hpp"

namespace xtape {
namespace linalg {

/// The lower triangular L [..., n, n] with L Lᵀ = A, for A positive definite. A stands for (A + Aᵀ) / 2. Gradient:
/// Murray, 2016, Differentiation of the Cholesky decomposition.
Var cholesky(const Argument& a, bool check = true);

struct TriangularOptions {
  bool upper = false;          ///< A is upper triangular; else lower. The other triangle is not read.
  bool transposed = false;     ///< Solves Aᵀ X = B.
  bool unit_diagonal = false;  ///< The diagonal is taken to be 1, and not read.
  bool check = true;
};
/// X with A X = B, for A [..., n, n] triangular and B [..., n, k]. The batch of A is that of B, or A has none.
Var triangular_solve(const Argument& a, const Var& b, const TriangularOptions& options = {});
/// X with L Lᵀ X = B, for L [..., n, n] from `cholesky` and B [..., n, k].
Var cholesky_solve(const Argument& l, const Var& b, bool check = true);

/// A[..., permutation[i], j] = (L U)[..., i, j] for A [..., n, n]. L has ones on its diagonal and is in the lower
/// triangle of `lu`, U in the upper one. `permutation` is int64 [..., n]; `sign` [...] is that of the determinant: -1,
/// 0 or 1.
struct Lu {
  Var lu, permutation, sign;
};
Lu lu(const Argument& a, bool check = true);
/// X with A X = B, for A [..., n, n]. B is [..., n, k], or a vector [n] as in NumPy. Batches broadcast.
Var solve(const Argument& a, const Var& b, bool check = true);
Var inv(const Argument& a, bool check = true);  ///< A⁻¹, for A [..., n, n].
Var det(const Argument& a);                     ///< The determinants [...]. The gradient of a singular one is NaN.
/// Sign and log |det A| [...]; of a singular matrix 0 and -inf. No gradient flows through the sign.
struct SignLogDet {
  Var sign, logabsdet;
};
SignLogDet slogdet(const Argument& a);

/// A = Q R for A [..., m, n], with Q [..., m, k], R [..., k, n] upper triangular, k = min(m, n). The signs are
/// LAPACK's. Gradient: Walter and Lehmann, 2018; Liao et al., 2019. Infinite or NaN where the first k columns of A are
/// dependent.
struct Qr {
  Var q, r;
};
Qr qr(const Argument& a);

/// A = V diag(w) Vᵀ: the eigenvalues w [..., n], ascending, and vectors V [..., n, n] in columns. A stands for
/// (A + Aᵀ) / 2. The gradient through the vectors divides by differences of eigenvalues: where two are equal, it is NaN
/// or infinite, as in JAX and PyTorch. That through the values alone does not.
struct Eigh {
  Var eigenvalues, eigenvectors;
};
Eigh eigh(const Argument& a, bool check = true);

/// A = U diag(s) Vh for A [..., m, n], with U [..., m, k], s [..., k] descending, Vh [..., k, n], k = min(m, n). The
/// gradient through U and Vh is NaN or infinite where two singular values are equal, or where one is 0 and A is not
/// square; that through s alone is not.
struct Svd {
  Var u, s, vh;
};
Svd svd(const Argument& a, bool check = true);

/// The pseudoinverse [..., n, m] of A [..., m, n]. Singular values up to rtol times the largest are taken as 0; a
/// negative rtol means max(m, n) times the precision of the dtype. Gradient: Golub and Pereyra, 1973, for constant
/// rank.
Var pinv(const Argument& a, double rtol = -1);
/// The X [..., n, k] of least norm that minimises |A X - B|: pinv(A) B. B is [..., m, k], or a vector [m].
Var lstsq(const Argument& a, const Var& b, double rtol = -1);
/// How many singular values are larger than rtol times the largest: int64 [...]. Not differentiable.
Var matrix_rank(const Argument& a, double rtol = -1);

/// [...] The norm of A: "fro" (root of the sum of squares), "nuc" (sum of singular values), "2" (largest singular
/// value), "1" or "inf" (largest sum of magnitudes of a column, of a row).
Var matrix_norm(const Argument& a, const std::string& ord = "fro");
Var matrix_power(const Argument& a, std::int64_t n);  ///< A multiplied n times; of the inverse if n < 0.
Var trace(const Argument& a);                         ///< [...] The sum of the diagonal, of A [..., m, n].
Var outer(const Argument& a, const Var& b);           ///< [..., m, n] from a [..., m] and b [..., n]: a_i b_j.
Var kron(const Argument& a, const Var& b);  ///< Kronecker product: [..., m p, n q] of [..., m, n] and [..., p, q].

}  // namespace linalg
}  // namespace xtape
