// The batches of a predictor: beginning a batch, and selecting and moving its rows.
#include <cstring>

#include "base/threads/threads.hpp"
#include "decode/predictor_data.hpp"
#include "decode/row_buffer.hpp"

namespace xtape {

using decode::CacheState;
using decode::FixedPlayers;
using decode::Recording;
using decode::RowBuffer;
using decode::RowMove;
using decode::StepSplit;

FixedPlayers::Function& Predictor::Data::fixed_player(std::int64_t count) {
  const FunctionKey key{function, Mode::predict, with_tokens(fixed_sizes, count, 1), "what fixed inputs give"};
  return *fixed_players.of(key, [&](const FunctionKey&) {
    Recording recording = record(fixed_sizes, count, 1, options.capacity);
    const StepSplit& split = split_of(recording, count, 1, options.capacity);
    std::vector<std::int64_t> row_axes;
    for (const decode::BoundaryValue& value : split.boundary) row_axes.push_back(value.row_axis);
    const NamedVars results = decode::boundary_vars(recording, split);
    return FixedPlayers::Recording{recording.tape, recording.fixed, results, row_axes};
  });
}

void Predictor::Data::store_boundary(const FixedPlayers::Function& fixed, std::int64_t repeat) {
  boundary_axes = fixed.notes;
  for (std::size_t k = 0; k < fixed.results.size(); ++k) {
    const ArrayView view = fixed.player.view(fixed.results[k].value);
    const std::int64_t axis = boundary_axes[k];
    if (boundary.size() == k) boundary.emplace_back(view.dtype());
    Shape shape = view.shape();
    if (axis >= 0) shape[0] *= repeat;
    RowBuffer& held = boundary[k];
    memory_moved(held.reshape(shape));
    if (axis < 0) {
      view.copy_to(held.array().data());
      continue;
    }
    const std::int64_t bytes = held.bytes_per_row();  // outputs are dense
    const auto* from = static_cast<const std::byte*>(view.data()) +
                       view.layout().offset * static_cast<std::int64_t>(size_of(view.dtype()));
    parallel_for(threads, shape[0], std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, bytes)),
                 [&](std::int64_t begin, std::int64_t finish) {
                   for (std::int64_t row = begin; row < finish; ++row)
                     std::memcpy(held.row(row), from + row / repeat * bytes, static_cast<std::size_t>(bytes));
                 });
  }
}

void Predictor::Data::begin(std::int64_t rows, const NamedArrays& fixed, std::int64_t repeat) {
  if (rows < 1 || repeat < 1)
    throw Error("a batch has at least one row, got " + std::to_string(rows) + " times " + std::to_string(repeat));
  if (repeat > decode::most_rows / rows)
    throw Error("a batch has at most " + std::to_string(decode::most_rows) + " rows, got " + std::to_string(rows) +
                " times " + std::to_string(repeat));
  fixed_sizes = sizes_of(fixed);
  step_key.sizes = fixed_sizes;
  past.clear();
  if (!fixed.empty()) {
    FixedPlayers::Function& known = fixed_player(rows);
    known.player.play(feeds_of(known.inputs, fixed), 0);
    store_boundary(known, repeat);
  }
  past.assign(static_cast<std::size_t>(rows * repeat), 0);
  origins.resize(past.size());
  for (std::size_t i = 0; i < origins.size(); ++i)
    origins[i] = static_cast<std::int32_t>(i) / static_cast<std::int32_t>(repeat);
  capacity = options.limit > 0 ? std::min(options.capacity, options.limit) : options.capacity;
  for (CacheState& state : states) memory_moved(state.clear(rows * repeat, capacity));
}

// Rows --------------------------------------------------------------------------------------------------------------

void Predictor::Data::select(const std::vector<std::int32_t>& rows) {
  if (rows.empty()) throw Error("at least one row must be selected");
  for (const std::int32_t row : rows)
    if (row < 0 || static_cast<std::size_t>(row) >= past.size())
      throw Error("row " + std::to_string(row) + " cannot be selected: there are " + std::to_string(past.size()));
  const auto count = std::ssize(rows);
  const bool more = rows.size() > past.size();
  // per new row: the old row with its boundary values; this is row i itself for a row i that keeps its origin
  std::vector<std::int32_t> fixed_rows(rows);
  for (std::size_t i = 0; i < std::min(rows.size(), past.size()); ++i)
    if (origins[rows[i]] == origins[i]) fixed_rows[i] = static_cast<std::int32_t>(i);
  const std::vector<RowMove> moves = decode::row_moves(rows);
  const std::vector<RowMove> fixed_moves = decode::row_moves(fixed_rows);
  const auto resize = [&] {
    for (CacheState& state : states) memory_moved(state.set_rows(count));
    for (std::size_t k = 0; k < boundary.size(); ++k) {
      if (boundary_axes[k] < 0) continue;
      Shape shape = boundary[k].shape();
      shape[0] = count;
      memory_moved(boundary[k].reshape(shape));
    }
  };
  if (more) resize();
  parallel_each(threads, std::ssize(states), [&](std::int64_t k) {
    std::int32_t first = 0;  // the row that is saved to `aside`
    for (const RowMove& move : moves) {
      if (move.to == RowMove::aside) first = move.from;
      const std::int32_t source = move.from == RowMove::aside ? first : move.from;
      states[k].move(move, past[source]);
    }
  });
  parallel_each(threads, std::ssize(boundary), [&](std::int64_t k) {
    RowBuffer& held = boundary[k];
    if (boundary_axes[k] < 0) return;
    for (const RowMove& move : fixed_moves)
      std::memcpy(held.row(move.to), held.row(move.from), static_cast<std::size_t>(held.bytes_per_row()));
  });
  if (!more) resize();
  std::vector<std::int64_t> selected_past;
  std::vector<std::int32_t> selected_origins;
  for (const std::int32_t row : rows) {
    selected_past.push_back(past[row]);
    selected_origins.push_back(origins[row]);
  }
  past = std::move(selected_past);
  origins = std::move(selected_origins);
}

}  // namespace xtape
