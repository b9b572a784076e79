#include "train/trainer/carried.hpp"

#include <algorithm>
#include <optional>

namespace xtape::train {

namespace {
constexpr std::size_t own_results = 2;  // the sum and the count
}  // namespace

std::vector<std::string> carried_names(const Model& model, const std::string& function) {
  const Signature& signature = model.signature(function);
  std::vector<std::string> names;
  for (std::size_t i = own_results; i < signature.results.size(); ++i)
    for (const FunctionInput& input : signature.inputs)
      if (input.name == signature.results[i]) names.push_back(input.name);
  return names;
}

std::vector<CarriedState> carried_states(const Model& model, const std::string& function, const NamedVars& inputs,
                                         const NamedVars& results) {
  std::vector<CarriedState> states;
  for (const std::string& name : carried_names(model, function)) {
    const Var input = inputs.at(name);
    const Var result = results.at(name);
    const std::string whose = "input '" + name + "' of function '" + function + "' of model '" + model.name() +
                              "' is also a result, a state that is carried from one batch to the next; ";
    if (input.type() != result.type())
      throw DefinitionError(whose + "the input is " + to_string(input.type()) + ", the result " +
                            to_string(result.type()) + ": their types must be equal");
    if (input.dtype() != model.dtype() && !is_integer(input.dtype()))
      throw DefinitionError(whose + "it must be a float (the model is " + name_of(model.dtype()) + ") or an int, not " +
                            name_of(input.dtype()));
    states.push_back({name, input, result, Array(input.dtype(), input.shape())});
  }
  return states;
}

bool are_states(const Store& arrays, const std::vector<CarriedState>& states) {
  return arrays.size() == states.size() && std::ranges::all_of(states, [&](const CarriedState& state) {
           const Array* array = arrays.find(state.name);
           return array != nullptr && array->dtype() == state.zeros.dtype() && array->shape() == state.zeros.shape();
         });
}

std::string to_string(const std::vector<CarriedState>& states) {
  std::string list;
  for (const CarriedState& state : states)
    list += (list.empty() ? "'" : ", '") + state.name + "' as " + to_string(state.input.type());
  return list;
}

std::vector<Feed> feeds_of(const NamedVars& inputs, const BatchArrays& batch, const std::vector<CarriedState>& states,
                           const Store* before) {
  if (before != nullptr && !are_states(*before, states))
    throw Error("a batch that continues the one before must have as many rows: it needs the states " +
                to_string(states) + ", and that one left other states");
  NamedArrays arrays = batch;
  for (const CarriedState& state : states)
    arrays.add(state.name, before != nullptr ? before->at(state.name) : state.zeros);
  return xtape::feeds_of(inputs, arrays);
}

namespace {
/// Returns the elements of `left` at the first indices of the only axis along which it is longer than `wanted`.
Array first_part(Array& left, const Array& wanted) {
  std::optional<std::size_t> longer;
  for (std::size_t axis = 0; axis < left.shape().size() && left.shape().size() == wanted.shape().size(); ++axis) {
    if (left.shape()[axis] == wanted.shape()[axis]) continue;
    if (longer || left.shape()[axis] < wanted.shape()[axis]) return left;
    longer = axis;
  }
  return longer ? part_of(left, *longer, 0, wanted.shape()[*longer]) : left;
}
}  // namespace

Store first_rows(Store& left, const std::vector<CarriedState>& states) {
  Store first;
  for (const CarriedState& state : states)
    if (left.has(state.name)) first.add(state.name, first_part(left.at(state.name), state.zeros));
  return first;
}

void keep(const Player& player, const std::vector<CarriedState>& states, Store& left) {
  if (!are_states(left, states)) {
    left = Store();
    for (const CarriedState& state : states) left.add(state.name, Array(state.zeros.dtype(), state.zeros.shape()));
  }
  for (const CarriedState& state : states) left.at(state.name).assign(player.view(state.result));
}

}  // namespace xtape::train
