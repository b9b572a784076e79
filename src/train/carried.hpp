/// States that a function of a recurrent model hands from one batch to the next: inputs that are also results, by name.
/// They enter as inputs, so that no gradient goes back into the batch before (truncated back-propagation through time:
/// Williams and Peng, 1990).
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

/// A state of a function that is recorded for one shape of batches.
struct CarriedState {
  std::string name;
  Var input;
  Var result;
  Array zeros;  ///< What a batch begins with that does not go on from another.
};

/// The names of the function's inputs that are also results, the first two results (sum and count) aside.
std::vector<std::string> carried_names(const Model& model, const std::string& function);

/// The states among these inputs and results of the function. Throws DefinitionError where one does not keep its type,
/// or is of a type that no state has.
std::vector<CarriedState> carried_states(const Model& model, const std::string& function, const NamedVars& inputs,
                                         const NamedVars& results);

/// Whether `arrays` are those states: all there, each of its type.
bool are_states(const Store& arrays, const std::vector<CarriedState>& states);
/// "'h' as float32 (1, 8, 16), 'c' as …".
std::string to_string(const std::vector<CarriedState>& states);

/// Feeds the batch's arrays to the inputs of the same names, and what the batch `before` left to the states: zeros
/// where it is null. Throws Error where that batch left other states.
std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch, const std::vector<CarriedState>& states,
                           const Store* before);

/// Keeps in `left` the states that the last play computed. Makes new arrays only where there are none of these types.
void keep(const Player& player, const std::vector<CarriedState>& states, Store& left);

}  // namespace xtape::train
