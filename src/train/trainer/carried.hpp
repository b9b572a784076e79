/// States that a recurrent model carries from one batch to the next. A state is an input of a function that has the
/// same name as one of its results. The gradient stops at such inputs (truncated back-propagation through time:
/// Williams and Peng, 1990).
#pragma once

#include <string>
#include <vector>

#include "ranks/shard_tree.hpp"
#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

/// A state of a function recorded for one batch shape.
struct CarriedState {
  std::string name;
  Var input;
  Var result;
  Array zeros;  ///< The initial state of a batch that does not continue another.
};

/// Returns the names of the function's inputs that are also results. Ignores the first two results, which are the sum
/// and the count of the loss.
std::vector<std::string> carried_names(const Model& model, const std::string& function);

/// Returns the states among these inputs and results of the function. Throws DefinitionError if the input and the
/// result of a state have different types. Throws DefinitionError if the dtype of a state is neither the model's dtype
/// nor an integer dtype.
std::vector<CarriedState> carried_states(const Model& model, const std::string& function, const NamedVars& inputs,
                                         const NamedVars& results);

/// Returns whether `arrays` has exactly these states with their dtypes and shapes.
bool are_states(const Store& arrays, const std::vector<CarriedState>& states);
/// Returns a list of the states for messages, such as "'h' as float32 (1, 8, 16), 'c' as …".
std::string to_string(const std::vector<CarriedState>& states);

/// Returns feeds for the inputs. An input that is a state gets its array from `before`, or zeros if `before` is null.
/// Each other input gets the array of the batch with the same name. Throws Error if the arrays in `before` do not have
/// the names, dtypes and shapes of `states`.
std::vector<Feed> feeds_of(const NamedVars& inputs, const BatchArrays& batch, const std::vector<CarriedState>& states,
                           const Store* before);

/// Returns the states in `left` that the first rows of a batch have left, for a batch with fewer rows than that one.
/// Its rows are the axis along which `states` are shorter.
Store first_rows(Store& left, const std::vector<CarriedState>& states);

/// Copies the states that the last play has computed. `left` receives the copies. Allocates memory only if `left` does
/// not already have arrays with the names, dtypes and shapes of the states.
void keep(const Player& player, const std::vector<CarriedState>& states, Store& left);

// Cuts a batch and carried states into shards by rows, and joins them again.

std::int64_t rows_of(const BatchArrays& batch);
/// Returns the rows of a shard. If the rows do not divide evenly, earlier shards have one more row.
inline ranks::Shards rows_of_shard(std::int64_t rows, std::int64_t shard, std::int64_t shards) {
  return ranks::shards_of(static_cast<int>(shard), static_cast<int>(shards), rows);
}
/// Returns a copy of the shard's rows of every array.
BatchArrays shard_of(const BatchArrays& batch, std::int64_t shard, std::int64_t shards);

/// Returns the rows of a draw that count, without the copies after them; the first row if none counts. Returns any
/// other batch as it is.
BatchArrays without_copies(BatchArrays batch);

/// Returns, for each carried state of the function, its axis of rows. Throws DefinitionError if a state has no such
/// axis.
std::vector<std::size_t> row_axes(const Model& model, const std::string& function);
/// Returns a copy of the elements [first, last) along an axis.
Array part_of(const Array& whole, std::size_t axis, std::int64_t first, std::int64_t last);
/// The inverse of part_of: writes `part` to `whole`, starting at index `first` of the axis.
void set_part(Array& whole, std::size_t axis, std::int64_t first, const Array& part);

}  // namespace xtape::train
