/// Sparse Jacobians and Hessians: sparsity patterns found on the tape, colourings, and values from few tangents.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "xtape/derivatives.hpp"
#include "xtape/tape.hpp"

namespace xtape {

/// The elements of a matrix that may be nonzero: element i is in row rows[i] and column columns[i]. The functions below
/// list each element once, sorted by row, then by column.
struct SparsityPattern {
  Shape shape = {0, 0};  ///< The numbers of rows and columns.
  std::vector<std::int64_t> rows = {};
  std::vector<std::int64_t> columns = {};
  std::size_t size() const { return rows.size(); }
};
bool operator==(const SparsityPattern& a, const SparsityPattern& b);
inline bool operator!=(const SparsityPattern& a, const SparsityPattern& b) {
  return !(a == b);
}

/// Returns the sparsity pattern of the Jacobian of `output` (rows: its elements) with respect to `input` (columns: its
/// elements), in row-major order. The pattern contains every derivative that is nonzero for some values of inputs and
/// parameters. It may contain more. It is exact for elementwise ops, moves of elements (also with constant indices),
/// reductions, products, running sums and ops that expand to these. Zeros of constant factors are taken into account.
/// Scans and checkpoints are followed step by step. For any other op, and for a take with fed indices, every element of
/// the result depends on all elements of the operands. Only constants are played.
///
/// Takes time and memory proportional to the patterns of all values between input and output. Throws DtypeError if a
/// var is not a float, HandleError if a var is empty, stale or belongs to another tape, ShapeError if the input has
/// more than 2^31 - 1 elements, and Error if the patterns together have more than 2^30 elements.
SparsityPattern jacobian_sparsity(const Var& output, const Var& input, Caller caller = Caller::here());
/// Returns the sparsity pattern of the Hessian of a scalar: the union of the pattern of the gradient's Jacobian and its
/// transpose. Nothing stays recorded. Throws ShapeError if the output does not have exactly one element. Errors of
/// jacobian_sparsity propagate.
SparsityPattern hessian_sparsity(const Var& output, const Var& input, Caller caller = Caller::here());

/// Returns a colour (0, 1, 2 …) for each column. No two columns of one colour have elements in the same row. The sum of
/// the columns of a colour then contains all their elements (Curtis, Powell and Reid, 1974, On the estimation of sparse
/// Jacobian matrices). The algorithm is greedy, and starts with the columns that have the most elements. The three
/// colourings throw ShapeError if the pattern's shape does not have two sizes, and Error if an element is outside the
/// shape or given twice, or if the memory left is too small for tables of this many rows and columns.
std::vector<std::int64_t> colour_columns(const SparsityPattern& pattern);
/// Returns a colour for each row, in the same way.
std::vector<std::int64_t> colour_rows(const SparsityPattern& pattern);
/// Returns a colour for each column of a symmetric matrix. For each element (i, j), the sum of the columns of some
/// colour contains (i, j) or (j, i) without other terms. This is a star colouring (Gebremedhin, Tarafdar, Manne and
/// Pothen, 2007, New acyclic and star coloring algorithms with application to computing Hessians). The pattern needs
/// only one of (i, j) and (j, i). Also throws ShapeError if the matrix is not square.
std::vector<std::int64_t> colour_symmetric(const SparsityPattern& pattern);

struct SparseOptions {
  /// The wanted elements, each once. If empty, all elements found by jacobian_sparsity or hessian_sparsity. The pattern
  /// must contain every nonzero element; otherwise the values are wrong. For a Hessian, one of (i, j) and (j, i) is
  /// enough.
  std::optional<SparsityPattern> pattern = std::nullopt;
  /// forward computes a tangent for each colour of columns. reverse computes a cotangent for each colour of rows.
  /// automatic chooses the mode with fewer colours. A Hessian is symmetric, so the mode only determines the
  /// computation, and automatic means forward.
  JacobianMode mode = JacobianMode::automatic;
  std::int64_t chunk_size = 0;  ///< The number of colours computed at once. 0: all (see JacobianOptions).
};

/// The elements of a sparse matrix: values[i] is in row pattern.rows[i] and column pattern.columns[i].
struct SparseMatrix {
  Var values;  ///< [pattern.size()]
  SparsityPattern pattern;
  std::int64_t colours = 0;  ///< The number of tangents or cotangents that a play computes.
};

/// Records the Jacobian of `output` with respect to `input`. The elements of both are in row-major order. The values
/// are ordinary nodes of the output's dtype, and are differentiable again. They are computed by jvp or grad for all
/// colours at once (vmap), followed by a take of the elements.
///
/// Throws ShapeError if the given pattern has another shape, and Error if chunk_size is negative. Errors of
/// jacobian_sparsity, the colourings and `jacobian` propagate. After an error, nothing is recorded.
SparseMatrix sparse_jacobian(const Var& output, const Var& input, const SparseOptions& options = {},
                             Caller caller = Caller::here());
/// Records the Hessian of a scalar. Each colour costs one product of the Hessian and a direction (hvp). Errors are
/// those of sparse_jacobian. Also throws ShapeError if the output does not have exactly one element.
SparseMatrix sparse_hessian(const Var& output, const Var& input, const SparseOptions& options = {},
                            Caller caller = Caller::here());

}  // namespace xtape
