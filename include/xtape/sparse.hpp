/// Sparse Jacobians and Hessians: patterns found on the tape, colourings, and values from few tangents.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "xtape/derivatives.hpp"
#include "xtape/tape.hpp"

namespace xtape {

/// Which elements of a matrix may differ from 0: element i is in row rows[i] and column columns[i]. The functions below
/// list each once, sorted by row, then by column.
struct SparsityPattern {
  Shape shape = {0, 0};  ///< Rows and columns.
  std::vector<std::int64_t> rows = {};
  std::vector<std::int64_t> columns = {};
  std::size_t size() const { return rows.size(); }
};
bool operator==(const SparsityPattern& a, const SparsityPattern& b);
inline bool operator!=(const SparsityPattern& a, const SparsityPattern& b) {
  return !(a == b);
}

/// The pattern of the Jacobian of `output` (rows: its elements) by `input` (columns: its elements), in row-major order.
/// It has every derivative that is not 0 for some values of inputs and parameters, and may have more. Elementwise ops,
/// moves of elements (also by constant indices), reductions, products, running sums and what expands to them are
/// exact; zeros of constant factors count. A scan or checkpoint is followed step by step. Of another op, or of a take
/// by indices that are fed, every element depends on all. No data is played, except constants.
///
/// Takes time and memory proportional to the patterns of all values between input and output. Throws DtypeError
/// unless both are floats, HandleError if a var is empty, stale or of another tape, ShapeError if the input has more
/// than 2^31 - 1 elements, and Error if the patterns have more than 2^30 elements together.
SparsityPattern jacobian_sparsity(const Var& output, const Var& input, Caller caller = Caller::here());
/// The pattern of the Hessian of a scalar: that of the Jacobian of its gradient and its transpose, united. Nothing
/// stays recorded. Throws ShapeError unless the output has one element, and as jacobian_sparsity does.
SparsityPattern hessian_sparsity(const Var& output, const Var& input, Caller caller = Caller::here());

/// A colour, from 0 on, per column, so that no two columns of one colour have elements in one row: the sum of the
/// columns of a colour has all their elements (Curtis, Powell and Reid, 1974, On the estimation of sparse Jacobian
/// matrices). Greedy, columns of most elements first. These three throw ShapeError unless the pattern's shape has two
/// sizes, and Error for an element outside of it or given twice.
std::vector<std::int64_t> colour_columns(const SparsityPattern& pattern);
/// The same for rows.
std::vector<std::int64_t> colour_rows(const SparsityPattern& pattern);
/// A colour per column of a symmetric matrix, so that of each element (i, j) at least one can be read from the sum of
/// the columns of a colour: itself or (j, i). A star colouring (Gebremedhin, Tarafdar, Manne and Pothen, 2007, New
/// acyclic and star coloring algorithms with application to computing Hessians). It suffices that the pattern has one
/// of (i, j) and (j, i). Also throws ShapeError unless the matrix is square.
std::vector<std::int64_t> colour_symmetric(const SparsityPattern& pattern);

struct SparseOptions {
  /// The elements wanted, each once; empty: all that jacobian_sparsity or hessian_sparsity finds. It must have every
  /// element that is not 0, or the values are wrong; of a Hessian, (i, j) or (j, i) is enough.
  std::optional<SparsityPattern> pattern = std::nullopt;
  /// forward: a tangent for each colour of columns; reverse: a cotangent for each colour of rows; automatic: what needs
  /// fewer. A Hessian is symmetric, so this says only how it is computed, and automatic is forward.
  JacobianMode mode = JacobianMode::automatic;
  std::int64_t chunk_size = 0;  ///< How many colours are computed at once; 0: all (see JacobianOptions).
};

/// The elements of a sparse matrix: values[i] is in row pattern.rows[i] and column pattern.columns[i].
struct SparseMatrix {
  Var values;  ///< [pattern.size()]
  SparsityPattern pattern;
  std::int64_t colours = 0;  ///< How many tangents or cotangents a play computes.
};

/// The Jacobian of `output` by `input`, each in row-major order. The values are recorded as ordinary nodes, of the
/// output's dtype, and are differentiable again: jvp or grad for all colours at once (vmap), then a take of the
/// elements.
///
/// Throws what jacobian_sparsity, the colourings and `jacobian` throw, ShapeError for a pattern of another shape, and
/// Error if chunk_size is negative; then nothing is recorded.
SparseMatrix sparse_jacobian(const Var& output, const Var& input, const SparseOptions& options = {},
                             Caller caller = Caller::here());
/// The Hessian of a scalar: products of the Hessian with a direction for each colour (hvp). Also throws ShapeError
/// unless the output has one element.
SparseMatrix sparse_hessian(const Var& output, const Var& input, const SparseOptions& options = {},
                            Caller caller = Caller::here());

}  // namespace xtape
