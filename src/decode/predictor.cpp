#include <algorithm>
#include <cstring>
#include <list>
#include <numeric>

#include "held_rows.hpp"
#include "nearest.hpp"
#include "recording.hpp"
#include "row_moves.hpp"
#include "threads.hpp"
#include "xtape/predict.hpp"

namespace xtape {

namespace {
using decode::Crossing;
using decode::HeldRows;
using decode::HeldState;
using decode::Recording;
using decode::RowMove;
using decode::Split;

/// Computes what depends on fixed inputs alone.
struct FixedPlayer {
  NamedSizes sizes;
  Recording recording;
  Split split;
  Vars outputs;
  Player player;
};

/// Computes a step. Its feeds see its own arrays.
struct StepPlayer {
  NamedSizes sizes;
  std::int64_t capacity = 0;
  Recording recording;
  Player player;
  Array tokens;
  Array past;
  std::vector<Feed> feeds;
};

std::int64_t size_named(const NamedSizes& sizes, const std::string& name) {
  for (const auto& size : sizes)
    if (size.first == name) return size.second;
  return -1;
}

/// The element of `kept` that `fits`, now the first; null where there is none.
template <class T, class Fits>
T* found_first(std::list<T>& kept, const Fits& fits) {
  const auto found = std::find_if(kept.begin(), kept.end(), fits);
  if (found == kept.end()) return nullptr;
  kept.splice(kept.begin(), kept, found);
  return &kept.front();
}
}  // namespace

struct Predictor::Data {
  Data(const Model& given_model, const std::string& given_function, const PredictorOptions& given_options);

  void begin(std::int64_t rows, const NamedArrays& fixed, std::int64_t repeat);
  const ArrayView& step(const ArrayView& tokens, const std::vector<std::int64_t>& counts);
  void select(const std::vector<std::int32_t>& rows);

  std::string whose() const { return "function '" + function + "' of model '" + model->name() + "'"; }
  NamedSizes sizes_of(const NamedArrays& arrays) const;
  NamedSizes with_tokens(NamedSizes sizes, std::int64_t count, std::int64_t tokens) const;
  Recording record(const NamedSizes& sizes, std::int64_t count, std::int64_t tokens, std::int64_t places) const;
  Split split_of(const Recording& recording, std::int64_t count, std::int64_t tokens, std::int64_t places) const;
  FixedPlayer& fixed_player(std::int64_t count);
  void hold_crossings(const FixedPlayer& player, std::int64_t repeat);
  StepPlayer& step_player(std::int64_t tokens);
  void hold_states(const Recording& recording);
  void make_room(std::int64_t places);
  /// Players stand on the memory that states and crossings had when they were planned.
  void memory_moved(bool elsewhere) {
    if (elsewhere) step_players.clear();
  }

  const Model* model;
  std::string function;
  PredictorOptions options;
  std::string rows_size, tokens_size;  // what the signature calls the sizes of the tokens
  int threads = 1;
  std::int64_t planned = 0;

  std::list<FixedPlayer> fixed_players;  // the most recently used first
  std::list<StepPlayer> step_players;
  std::vector<HeldState> states;
  bool states_known = false;
  std::vector<HeldRows> crossings;
  std::vector<std::int64_t> crossing_axes;

  NamedSizes fixed_sizes;               // of the batch, without the number of rows
  std::vector<std::int64_t> past;       // per row
  std::vector<std::int32_t> origins;    // per row: the row of the fixed inputs that it belongs to
  std::vector<std::int64_t> next_past;
  std::int64_t capacity = 0;
  ArrayView result;
};

Predictor::Data::Data(const Model& given_model, const std::string& given_function,
                      const PredictorOptions& given_options)
    : model(&given_model), function(given_function), options(given_options) {
  const Signature& signature = model->signature(function);
  std::vector<std::string> names;
  for (const FunctionInput& input : signature.inputs) {
    names.push_back(input.name);
    if (input.name != options.stepped) continue;
    const auto is_size = [&](const std::string& dim) {
      return std::find(signature.sizes.begin(), signature.sizes.end(), dim) != signature.sizes.end();
    };
    if (input.dtype != Dtype::int64 || input.dims.size() != 2 || !is_size(input.dims[0]) || !is_size(input.dims[1]) ||
        input.dims[0] == input.dims[1])
      throw DefinitionError("input '" + input.name + "' of " + whose() + " must be an int of two sizes [rows, tokens]");
    rows_size = input.dims[0];
    tokens_size = input.dims[1];
  }
  if (rows_size.empty())
    throw DefinitionError(whose() + " has no input '" + options.stepped + "' to be given step by step" +
                          did_you_mean(options.stepped, names));
  if (options.capacity < 1) throw Error("the capacity of caches must be at least 1");
  if (options.players < 1) throw Error("at least one player must be kept");
  if (options.limit < 0) throw Error("the limit of positions must be at least 1, or 0 for none");
  options.player.carries.clear();
  if (options.player.arena == nullptr) options.player.arena = make_arena();
  threads = options.player.threads > 0 ? options.player.threads : std::max(1, omp_get_max_threads());
}

/// The sizes that the arrays of the fixed inputs give, without that of the rows.
NamedSizes Predictor::Data::sizes_of(const NamedArrays& arrays) const {
  NamedSizes sizes;
  const Signature& signature = model->signature(function);
  for (const FunctionInput& input : signature.inputs) {
    if (input.name == options.stepped) continue;
    const auto given = std::find_if(arrays.begin(), arrays.end(), [&](const auto& each) { return each.first == input.name; });
    if (given == arrays.end()) throw Error(whose() + " takes an input '" + input.name + "', which is not given");
    const Shape& shape = given->second.shape();
    if (shape.size() != input.dims.size())
      throw ShapeError("input '" + input.name + "' of " + whose() + " has " + std::to_string(input.dims.size()) +
                       " axes, got an array of shape " + to_string(shape));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::string& dim = input.dims[axis];
      if (dim == tokens_size)
        throw DefinitionError("input '" + input.name + "' of " + whose() + " must not have the size '" + tokens_size +
                              "' of a step's tokens");
      const bool named = std::find(signature.sizes.begin(), signature.sizes.end(), dim) != signature.sizes.end();
      if (named && dim != rows_size && size_named(sizes, dim) < 0) sizes.emplace_back(dim, shape[axis]);
    }
  }
  if (arrays.size() + 1 != signature.inputs.size())
    throw Error(whose() + " has " + std::to_string(signature.inputs.size() - 1) + " fixed inputs, got " +
                std::to_string(arrays.size()) + " arrays");
  return sizes;
}

NamedSizes Predictor::Data::with_tokens(NamedSizes sizes, std::int64_t count, std::int64_t tokens) const {
  sizes.emplace_back(rows_size, count);
  sizes.emplace_back(tokens_size, tokens);
  return sizes;
}

Recording Predictor::Data::record(const NamedSizes& sizes, std::int64_t count, std::int64_t tokens,
                                  std::int64_t places) const {
  return decode::record_step(*model, function, options.stepped, with_tokens(sizes, count, tokens), places);
}

Split Predictor::Data::split_of(const Recording& recording, std::int64_t count, std::int64_t tokens,
                                std::int64_t places) const {
  const std::int64_t other_tokens = tokens > 1 ? tokens - 1 : 2;  // fewer, where possible: there may be a limit
  return decode::split(recording, record(fixed_sizes, count + 1, tokens, places),
                       record(fixed_sizes, count, other_tokens, places + 1));
}

// Beginning a batch -------------------------------------------------------------------------------------------------

FixedPlayer& Predictor::Data::fixed_player(std::int64_t count) {
  const NamedSizes sizes = with_tokens(fixed_sizes, count, 1);
  if (FixedPlayer* known = found_first(fixed_players, [&](const auto& each) { return each.sizes == sizes; }))
    return *known;
  Recording recording = record(fixed_sizes, count, 1, options.capacity);
  Split split = split_of(recording, count, 1, options.capacity);
  const Vars outputs = decode::crossing_vars(recording, split);
  Player player(recording.tape, outputs, options.player);
  ++planned;
  fixed_players.push_front({sizes, recording, std::move(split), outputs, std::move(player)});
  if (fixed_players.size() > options.players) fixed_players.pop_back();
  return fixed_players.front();
}

void Predictor::Data::hold_crossings(const FixedPlayer& player, std::int64_t repeat) {
  crossing_axes.clear();
  for (std::size_t k = 0; k < player.outputs.size(); ++k) {
    const ArrayView view = player.player.view(player.outputs[k]);
    const std::int64_t axis = player.split.crossings[k].row_axis;
    if (crossings.size() == k) crossings.emplace_back(view.dtype());
    crossing_axes.push_back(axis);
    Shape shape = view.shape();
    if (axis >= 0) shape[0] *= repeat;
    HeldRows& held = crossings[k];
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
  fixed_sizes = sizes_of(fixed);
  past.clear();
  if (!fixed.empty()) {
    FixedPlayer& player = fixed_player(rows);
    std::vector<Feed> feeds;
    for (const auto& [name, var] : player.recording.fixed)
      for (const auto& given : fixed)
        if (given.first == name) feeds.emplace_back(var, given.second);
    player.player.play(feeds);
    hold_crossings(player, repeat);
  }
  past.assign(static_cast<std::size_t>(rows * repeat), 0);
  origins.resize(past.size());
  for (std::size_t i = 0; i < origins.size(); ++i) origins[i] = static_cast<std::int32_t>(i) / static_cast<std::int32_t>(repeat);
  capacity = options.limit > 0 ? std::min(options.capacity, options.limit) : options.capacity;
  for (HeldState& state : states) memory_moved(state.clear(rows * repeat, capacity));
}

// A step ------------------------------------------------------------------------------------------------------------

/// The states that the first recording has, with room for the batch.
void Predictor::Data::hold_states(const Recording& recording) {
  if (states_known) return;
  states_known = true;
  for (const Carry& state : recording.tape.states()) {
    const auto axis = state.output.node().attributes.get<std::int64_t>("axis");
    states.emplace_back(state.output.type(), normal_axis(axis, state.output.rank()));
    states.back().clear(static_cast<std::int64_t>(past.size()), capacity);
  }
}

StepPlayer& Predictor::Data::step_player(std::int64_t tokens) {
  const auto count = static_cast<std::int64_t>(past.size());
  const auto fits = [&](const StepPlayer& each) {
    if (each.capacity != capacity || each.tokens.shape() != Shape{count, tokens}) return false;
    return std::all_of(fixed_sizes.begin(), fixed_sizes.end(),
                       [&](const auto& size) { return size_named(each.sizes, size.first) == size.second; });
  };
  if (StepPlayer* known = found_first(step_players, fits)) return *known;
  Recording recording = record(fixed_sizes, count, tokens, capacity);
  hold_states(recording);
  if (!recording.fixed.empty()) {
    std::vector<Array> memory;
    for (const HeldRows& held : crossings) memory.push_back(held.array());
    const Split split = split_of(recording, count, tokens, capacity);
    if (split.crossings.size() != crossing_axes.size())
      throw DefinitionError(whose() + " must record the same ops for any number of rows and tokens");
    recording = decode::rest_of(recording, split, memory);
  }
  const Shape& shape = recording.result.shape();
  if (shape.size() < 2 || shape[0] != count || shape[1] != tokens)
    throw DefinitionError(whose() + " must give [rows, tokens, …], here " + to_string(Shape{count, tokens}) +
                          " and more, not " + to_string(recording.result.type()));
  PlayerOptions player_options = options.player;
  player_options.carries = recording.tape.states();
  for (std::size_t i = 0; i < states.size(); ++i) player_options.carries[i].memory = states[i].array();
  Player player(recording.tape, {recording.result}, player_options);
  ++planned;
  step_players.push_front({with_tokens(fixed_sizes, count, tokens), capacity, recording, std::move(player),
                           Array(Dtype::int64, {count, tokens}), Array(Dtype::int64, {count}), {}});
  StepPlayer& made = step_players.front();
  if (made.recording.tokens) made.feeds.emplace_back(made.recording.tokens, made.tokens);
  if (made.recording.past) made.feeds.emplace_back(made.recording.past, made.past);
  if (step_players.size() > options.players) step_players.pop_back();
  return made;
}

void Predictor::Data::make_room(std::int64_t places) {
  if (options.limit > 0 && places > options.limit)
    throw Error("a row would have " + std::to_string(places) + " positions; the limit is " +
                std::to_string(options.limit));
  if (places <= capacity) return;
  while (capacity < places) capacity *= 2;
  if (options.limit > 0) capacity = std::min(capacity, options.limit);
  for (HeldState& state : states) memory_moved(state.grow(past, capacity));
}

const ArrayView& Predictor::Data::step(const ArrayView& tokens, const std::vector<std::int64_t>& counts) {
  if (past.empty()) throw Error("a step needs a batch: call begin first");
  const auto count = static_cast<std::int64_t>(past.size());
  if (tokens.dtype() != Dtype::int64 || tokens.shape().size() != 2 || tokens.shape()[0] != count ||
      tokens.shape()[1] < 1)
    throw ShapeError("the tokens of a step must be int64 [" + std::to_string(count) + ", t] with t at least 1, got " +
                     to_string(ValueType{tokens.dtype(), tokens.shape()}));
  const std::int64_t columns = tokens.shape()[1];
  if (!counts.empty() && counts.size() != past.size())
    throw Error("counts must name one number for each of the " + std::to_string(count) + " rows, got " +
                std::to_string(counts.size()));
  next_past.assign(past.begin(), past.end());
  for (std::size_t i = 0; i < past.size(); ++i) {
    const std::int64_t more = counts.empty() ? columns : counts[i];
    if (more < 0 || more > columns)
      throw Error("row " + std::to_string(i) + " cannot go on by " + std::to_string(more) + " of " +
                  std::to_string(columns) + " tokens");
    next_past[i] += more;
  }
  make_room(*std::max_element(next_past.begin(), next_past.end()));
  StepPlayer& player = step_player(columns);
  tokens.copy_to(player.tokens.data());
  std::copy(past.begin(), past.end(), player.past.as<std::int64_t>());
  player.player.play(player.feeds);
  result = player.player.view(player.recording.result);
  past.swap(next_past);
  return result;
}

// Rows --------------------------------------------------------------------------------------------------------------

void Predictor::Data::select(const std::vector<std::int32_t>& rows) {
  if (rows.empty()) throw Error("at least one row must be selected");
  for (const std::int32_t row : rows)
    if (row < 0 || static_cast<std::size_t>(row) >= past.size())
      throw Error("row " + std::to_string(row) + " cannot be selected: there are " + std::to_string(past.size()));
  const auto count = static_cast<std::int64_t>(rows.size());
  const bool more = rows.size() > past.size();
  std::vector<std::int32_t> fixed_rows(rows);  // a row of the same origin holds the same already
  for (std::size_t i = 0; i < std::min(rows.size(), past.size()); ++i)
    if (origins[static_cast<std::size_t>(rows[i])] == origins[i]) fixed_rows[i] = static_cast<std::int32_t>(i);
  const std::vector<RowMove> moves = decode::row_moves(rows);
  const std::vector<RowMove> fixed_moves = decode::row_moves(fixed_rows);
  const auto resize = [&] {
    for (HeldState& state : states) memory_moved(state.set_rows(count));
    for (std::size_t k = 0; k < crossings.size(); ++k) {
      if (crossing_axes[k] < 0) continue;
      Shape shape = crossings[k].shape();
      shape[0] = count;
      memory_moved(crossings[k].reshape(shape));
    }
  };
  if (more) resize();
  parallel_each(threads, static_cast<std::int64_t>(states.size()), [&](std::int64_t k) {
    std::int32_t first = 0;  // what stands aside
    for (const RowMove& move : moves) {
      if (move.to == RowMove::aside) first = move.from;
      const std::int32_t source = move.from == RowMove::aside ? first : move.from;
      states[static_cast<std::size_t>(k)].move(move, past[static_cast<std::size_t>(source)]);
    }
  });
  parallel_each(threads, static_cast<std::int64_t>(crossings.size()), [&](std::int64_t k) {
    HeldRows& held = crossings[static_cast<std::size_t>(k)];
    if (crossing_axes[static_cast<std::size_t>(k)] < 0) return;
    for (const RowMove& move : fixed_moves)
      std::memcpy(held.row(move.to), held.row(move.from), static_cast<std::size_t>(held.bytes_per_row()));
  });
  if (!more) resize();
  std::vector<std::int64_t> selected_past;
  std::vector<std::int32_t> selected_origins;
  for (const std::int32_t row : rows) {
    selected_past.push_back(past[static_cast<std::size_t>(row)]);
    selected_origins.push_back(origins[static_cast<std::size_t>(row)]);
  }
  past = std::move(selected_past);
  origins = std::move(selected_origins);
}

// The handle --------------------------------------------------------------------------------------------------------

Predictor::Predictor(const Model& model, const std::string& function, const PredictorOptions& options)
    : data_(std::make_unique<Data>(model, function, options)) {}
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
Predictor::~Predictor() = default;

void Predictor::begin(std::int64_t rows, const NamedArrays& fixed, std::int64_t repeat) {
  data_->begin(rows, fixed, repeat);
}
const ArrayView& Predictor::step(const ArrayView& tokens, const std::vector<std::int64_t>& counts) {
  return data_->step(tokens, counts);
}
void Predictor::select(const std::vector<std::int32_t>& rows) {
  data_->select(rows);
}
std::int64_t Predictor::rows() const {
  return static_cast<std::int64_t>(data_->past.size());
}
const std::vector<std::int64_t>& Predictor::past() const {
  return data_->past;
}
std::int64_t Predictor::capacity() const {
  return data_->capacity;
}
std::int64_t Predictor::planned() const {
  return data_->planned;
}

}  // namespace xtape
