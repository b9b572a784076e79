// Sparse Jacobians and Hessians. Finds the pattern and its colours, computes the sum of the columns of each colour, and
// extracts the elements from the sums.
#include "xtape/sparse.hpp"

#include <algorithm>
#include <numeric>

#include "base/arrays/visit.hpp"
#include "functions/sparse/colouring.hpp"
#include "functions/sparse/dependence.hpp"
#include "grad/chunks.hpp"
#include "tape/calls.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// The limit of nodes in bodies that one walk visits.
constexpr std::int64_t most_nodes = 1000000;

void check_vars(const Var& output, const Var& input, const std::string& what) {
  if (input.tape() != output.tape()) throw HandleError(what + ": the input is of another tape than the output");
  for (const Var& var : {output, input})
    if (!is_floating(var.dtype()))
      throw DtypeError(what + ": the output and the input must be float arrays, got " + to_string(var.type()));
}

SparsityPattern found_pattern(const Var& output, const Var& input) {
  IndexSets sets(count_of(input.shape()));
  std::vector<IndexSets::Id> units;
  for (std::int64_t i = 0; i < count_of(input.shape()); ++i) units.push_back(sets.single(i));
  std::int64_t nodes = most_nodes;
  DependenceWalk walk(output.tape(), sets, nodes);
  walk.set(input.id(), std::make_shared<const std::vector<IndexSets::Id>>(std::move(units)));
  const Dependence found = walk.run({output.id()})[0];
  SparsityPattern pattern{{count_of(output.shape()), count_of(input.shape())}, {}, {}};
  for (std::size_t row = 0; found && row < found->size(); ++row)
    for (const std::int32_t column : sets.of((*found)[row])) {
      pattern.rows.push_back(static_cast<std::int64_t>(row));
      pattern.columns.push_back(column);
    }
  return pattern;
}

/// If a pattern is given, checks and returns this pattern. Otherwise returns the pattern that `find` finds.
template <class Find>
SparsityPattern wanted_pattern(const SparseOptions& options, const Shape& shape, const std::string& what,
                               const Find& find) {
  if (options.chunk_size < 0)
    throw Error(what + ": chunk_size must not be negative, got " + std::to_string(options.chunk_size));
  if (!options.pattern) return find();
  check_pattern(*options.pattern, what);
  if (options.pattern->shape != shape)
    throw ShapeError(what + ": the pattern has shape " + to_string(options.pattern->shape) + ", but the matrix is " +
                     to_string(shape));
  return *options.pattern;
}

/// Returns one array like `like` per colour, with ones at the elements of this colour: [colours, …].
Var seeds(const Var& like, const std::vector<std::int64_t>& colours) {
  Shape shape = like.shape();
  shape.insert(0, colours_in(colours));
  Array ones(like.dtype(), shape);
  const auto count = std::ssize(colours);
  visit_floats(ones, [&]<class T>(T* elements) {
    for (std::int64_t i = 0; i < count; ++i) elements[colours[i] * count + i] = T(1);
  });
  Tape tape = like.tape();
  return tape.constant(ones);
}

/// Returns the elements of `sums` at `places`, which are indices in row-major order.
Var taken(const Var& sums, const std::vector<std::int64_t>& places) {
  Array indices(Dtype::int64, {std::ssize(places)});
  std::copy(places.begin(), places.end(), indices.as<std::int64_t>());
  Tape tape = sums.tape();
  return take(reshape(sums, {count_of(sums.shape())}), tape.constant(indices));
}

Var column_sums(const Var& output, const Var& input, const std::vector<std::int64_t>& colours,
                std::int64_t chunk_size) {
  const auto along = [&](const Vars& tangent) { return jvp({output}, {input}, tangent); };
  return over_chunks(along, seeds(input, colours), chunk_size)[0];
}

Var row_sums(const Var& output, const Var& input, const std::vector<std::int64_t>& colours, std::int64_t chunk_size) {
  const auto back = [&](const Vars& cotangent) {
    return grad({output}, {input}, cotangent, {.materialize_grads = true});
  };
  return cast(over_chunks(back, seeds(output, colours), chunk_size)[0], output.dtype());
}

struct Colouring {
  bool by_columns = true;
  std::vector<std::int64_t> colours;
};

/// Returns the colouring of columns or rows, as `mode` requires. If `mode` leaves the choice open, returns the
/// colouring with fewer colours.
Colouring colouring_of(const SparsityPattern& pattern, JacobianMode mode) {
  const auto of_columns = [&] { return Colouring{true, colour_columns(pattern)}; };
  const auto of_rows = [&] { return Colouring{false, colour_rows(pattern)}; };
  if (mode == JacobianMode::forward) return of_columns();
  if (mode == JacobianMode::reverse) return of_rows();
  // The columns in one row all have different colours, so the length of the longest row is a lower bound for the number
  // of colours of columns.
  const auto least_columns = Adjacency(pattern.rows, pattern.columns, pattern.shape[0]).most();
  const auto least_rows = Adjacency(pattern.columns, pattern.rows, pattern.shape[1]).most();
  const bool columns_first = least_columns <= least_rows;
  Colouring first = columns_first ? of_columns() : of_rows();
  const auto count = static_cast<std::size_t>(colours_in(first.colours));
  if (std::max(least_columns, least_rows) >= count) return first;
  Colouring second = columns_first ? of_rows() : of_columns();
  return static_cast<std::size_t>(colours_in(second.colours)) < count ? second : first;
}

/// Returns, for each element of `pattern`, its place in the column sums [colours, n] of a symmetric matrix. If another
/// column of the same colour has an element in the same row, the result is the place of the mirror image instead.
std::vector<std::int64_t> symmetric_places(const SparsityPattern& pattern, const std::vector<std::int64_t>& colours) {
  const std::int64_t n = pattern.shape[0];
  const SparsityPattern both = symmetrised(pattern);
  const Adjacency graph(both.rows, both.columns, n);
  std::vector<std::int64_t> numbers(pattern.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const Adjacency elements(pattern.rows, numbers, n);
  std::vector<std::int64_t> places(pattern.size()), counts(static_cast<std::size_t>(colours_in(colours)), 0);
  for (std::int64_t row = 0; row < n; ++row) {
    for (const std::int64_t column : graph.of(row)) ++counts[colours[column]];
    for (const std::int64_t element : elements.of(row)) {
      const std::int64_t column = pattern.columns[element];
      const bool is_alone = counts[colours[column]] == 1;
      places[element] = is_alone ? colours[column] * n + row : colours[row] * n + column;
    }
    for (const std::int64_t column : graph.of(row)) counts[colours[column]] = 0;
  }
  return places;
}

SparseMatrix without_elements(const Var& output, SparsityPattern pattern) {
  return {zeros(output.tape(), {0}, output.dtype()), std::move(pattern), 0};
}
}  // namespace

SparsityPattern jacobian_sparsity(const Var& output, const Var& input, Caller caller) {
  return at_place(caller, [&] {
    check_vars(output, input, "jacobian_sparsity");
    return found_pattern(output, input);
  });
}

SparsityPattern hessian_sparsity(const Var& output, const Var& input, Caller caller) {
  return all_or_nothing(output.tape(), nullptr, caller, [&] {
    check_vars(output, input, "hessian_sparsity");
    Tape tape = output.tape();
    const std::size_t size = tape.size();
    const Var gradient = grad(output, {input}, {.materialize_grads = true})[0];
    SparsityPattern pattern = symmetrised(found_pattern(gradient, input));
    tape.truncate(size);
    return pattern;
  });
}

SparseMatrix sparse_jacobian(const Var& output, const Var& input, const SparseOptions& options, Caller caller) {
  return all_or_nothing(output.tape(), nullptr, caller, [&]() -> SparseMatrix {
    check_vars(output, input, "sparse_jacobian");
    const std::int64_t m = count_of(output.shape()), n = count_of(input.shape());
    SparsityPattern pattern =
        wanted_pattern(options, {m, n}, "sparse_jacobian", [&] { return found_pattern(output, input); });
    if (pattern.size() == 0) return without_elements(output, std::move(pattern));
    const auto [by_columns, colours] = colouring_of(pattern, options.mode);
    const Var sums = by_columns ? column_sums(output, input, colours, options.chunk_size)
                                : row_sums(output, input, colours, options.chunk_size);
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const std::int64_t row = pattern.rows[i], column = pattern.columns[i];
      places.push_back(by_columns ? colours[column] * m + row : colours[row] * n + column);
    }
    return {taken(sums, places), std::move(pattern), colours_in(colours)};
  });
}

SparseMatrix sparse_hessian(const Var& output, const Var& input, const SparseOptions& options, Caller caller) {
  return all_or_nothing(output.tape(), nullptr, caller, [&]() -> SparseMatrix {
    check_vars(output, input, "sparse_hessian");
    const std::int64_t n = count_of(input.shape());
    const Var gradient = grad(output, {input}, {.materialize_grads = true})[0];
    SparsityPattern pattern =
        wanted_pattern(options, {n, n}, "sparse_hessian", [&] { return symmetrised(found_pattern(gradient, input)); });
    if (pattern.size() == 0) return without_elements(output, std::move(pattern));
    const std::vector<std::int64_t> colours = colour_symmetric(pattern);
    const Var sums = options.mode == JacobianMode::reverse ? row_sums(gradient, input, colours, options.chunk_size)
                                                           : column_sums(gradient, input, colours, options.chunk_size);
    const Var values = taken(sums, symmetric_places(pattern, colours));
    return {cast(values, output.dtype()), std::move(pattern), colours_in(colours)};
  });
}

}  // namespace xtape
