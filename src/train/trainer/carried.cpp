#include "train/trainer/carried.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/messages/wording.hpp"

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

// Shards of batches and states.

std::int64_t rows_of(const BatchArrays& batch) {
  return batch.empty() || batch[0].value.shape().empty() ? 0 : batch[0].value.shape()[0];
}

BatchArrays shard_of(const BatchArrays& batch, std::int64_t shard, std::int64_t shards) {
  const std::int64_t all = rows_of(batch);
  for (const auto& field : batch)
    if (field.value.shape().empty() || field.value.shape()[0] != all)
      throw Error("batch.shards must be 1: the array '" + field.name + "' of the batch has shape " +
                  to_string(field.value.shape()) + ", which is not one row for each of the " + std::to_string(all) +
                  " rows, so it cannot be cut");
  const ranks::Shards rows = rows_of_shard(all, shard, shards);
  BatchArrays part;
  for (const auto& field : batch) part.add(field.name, part_of(field.value, 0, rows.first, rows.last));
  return part;
}

BatchArrays without_copies(BatchArrays batch) {
  const Array* drawn = batch.find(drawn_rows);
  if (drawn == nullptr) return batch;
  const auto* counts = drawn->as<float>();
  const auto rows = std::max<std::int64_t>(1, std::count(counts, counts + drawn->count(), 1.0F));
  BatchArrays part;
  for (const auto& field : batch) part.add(field.name, part_of(field.value, 0, 0, rows));
  return part;
}

std::vector<std::size_t> row_axes(const Model& model, const std::string& function) {
  const std::vector<std::string> carried = carried_names(model, function);
  const std::vector<FunctionInput>& inputs = model.signature(function).inputs;
  const auto is_carried = [&](const FunctionInput& input) { return contains(carried, input.name); };
  const auto data = std::ranges::find_if(
      inputs, [&](const FunctionInput& input) { return !is_carried(input) && !input.dims.empty(); });
  std::vector<std::size_t> axes;
  for (const std::string& name : carried) {
    const auto state = std::ranges::find_if(inputs, [&](const FunctionInput& input) { return input.name == name; });
    const auto axis = data == inputs.end() ? state->dims.end() : std::ranges::find(state->dims, data->dims[0]);
    if (axis == state->dims.end())
      throw DefinitionError("batch.shards must be 1: the carried state '" + name + "' of function '" + function +
                            "' of model '" + model.name() + "' has no axis '" +
                            (data == inputs.end() ? "b" : data->dims[0]) + "' of rows, by which a batch is cut");
    axes.push_back(static_cast<std::size_t>(axis - state->dims.begin()));
  }
  return axes;
}

namespace {
/// Visits the part of `whole` that has the indices [first, first + count) along the axis. Calls
/// copy(offset in the whole, offset in the part, length) for each contiguous run of the part. All three are in bytes.
template <class Copy>
void for_runs(const Array& whole, std::size_t axis, std::int64_t first, std::int64_t count, const Copy& copy) {
  const Shape& shape = whole.shape();
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(size_of(whole.dtype()));
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (std::int64_t i = 0; i < outer; ++i)
    copy((i * shape[axis] + first) * inner, i * count * inner, static_cast<std::size_t>(count * inner));
}
}  // namespace

Array part_of(const Array& whole, std::size_t axis, std::int64_t first, std::int64_t last) {
  Shape shape = whole.shape();
  *(shape.begin() + axis) = last - first;
  Array part(whole.dtype(), shape);
  const auto* from = static_cast<const std::byte*>(whole.data());
  auto* to = static_cast<std::byte*>(part.data());
  for_runs(whole, axis, first, last - first, [&](std::int64_t in_whole, std::int64_t in_part, std::size_t bytes) {
    std::memcpy(to + in_part, from + in_whole, bytes);
  });
  return part;
}

void set_part(Array& whole, std::size_t axis, std::int64_t first, const Array& part) {
  const auto* from = static_cast<const std::byte*>(part.data());
  auto* to = static_cast<std::byte*>(whole.data());
  for_runs(whole, axis, first, part.shape()[axis], [&](std::int64_t in_whole, std::int64_t in_part, std::size_t bytes) {
    std::memcpy(to + in_whole, from + in_part, bytes);
  });
}

}  // namespace xtape::train
