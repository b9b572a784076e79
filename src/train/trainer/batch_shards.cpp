#include <algorithm>
#include <cstring>

#include "base/messages/wording.hpp"
#include "train/trainer/carried.hpp"

namespace xtape::train {

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
