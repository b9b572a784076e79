// A predictor's steps and their players.
#include "decode/predictor_data.hpp"

namespace xtape {

using decode::CacheState;
using decode::Recording;
using decode::RowBuffer;
using decode::StepInputs;
using decode::StepPlayers;
using decode::StepSplit;

/// At the first recording, allocates the states of the caches with room for the batch.
void Predictor::Data::hold_states(const Recording& recording) {
  if (states_known) return;
  states_known = true;
  for (const Carry& state : recording.tape.states()) {
    const auto axis = state.output.node().attributes.get<std::int64_t>("axis");
    states.emplace_back(state.output.type(), normal_axis(axis, state.output.rank()));
    states.back().clear(std::ssize(past), capacity);
  }
}

StepPlayers::Function& Predictor::Data::step_player(std::int64_t tokens, bool wanted) {
  const auto count = std::ssize(past);
  static const std::string room = "room of caches";  // no size in a definition can have this name
  step_key.sizes.set(rows_size, count);
  step_key.sizes.set(tokens_size, tokens);
  step_key.sizes.set(room, capacity);
  step_key.transformation = wanted ? "step" : "read";
  const std::int64_t before = step_players.planned();
  StepPlayers::Function& known =
      *step_players.of(step_key, [&](const FunctionKey&) { return record_step(count, tokens, wanted); });
  if (step_players.planned() > before && !known.results.empty()) share_result(known);
  return known;
}

/// Makes the players of all sizes write their results to the same memory, because only the last result is valid.
void Predictor::Data::share_result(StepPlayers::Function& known) {
  const Var& var = known.results[0].value;
  if (!result_memory || result_memory.count() < count_of(var.shape()))
    result_memory = Array(var.dtype(), {count_of(var.shape())});
  known.player.move_outputs({var}, {result_memory.first(var.shape())});
}

StepPlayers::Recording Predictor::Data::record_step(std::int64_t count, std::int64_t tokens, bool wanted) {
  Recording recording = record(fixed_sizes, count, tokens, capacity);
  hold_states(recording);
  if (!recording.fixed.empty()) {
    std::vector<Array> memory;
    for (const RowBuffer& held : boundary) memory.push_back(held.array());
    const StepSplit& split = split_of(recording, count, tokens, capacity);
    if (split.boundary.size() != boundary_axes.size())
      throw DefinitionError(whose() + " must record the same ops for any number of rows and tokens");
    recording = decode::rest_of(recording, split, memory);
  }
  const Shape& shape = recording.result.shape();
  if (shape.size() < 2 || shape[0] != count || shape[1] != tokens)
    throw DefinitionError(whose() + " must give [rows, tokens, …], here " + to_string(Shape{count, tokens}) +
                          " and more, not " + to_string(recording.result.type()));
  StepInputs inputs{Array(Dtype::int64, {count, tokens}), Array(Dtype::int64, {count}), {}};
  if (!recording.tokens.empty()) inputs.feeds.emplace_back(recording.tokens, inputs.tokens);
  if (!recording.past.empty()) inputs.feeds.emplace_back(recording.past, inputs.past);
  std::vector<Carry> carries = recording.tape.states();
  for (std::size_t i = 0; i < states.size(); ++i) carries[i].memory = states[i].array();
  NamedVars results;
  if (wanted || carries.empty()) results.add("result", recording.result);  // a player needs something to compute
  return {recording.tape, {}, results, inputs, carries};
}

void Predictor::Data::make_room(std::int64_t places) {
  const std::int64_t most = options.limit > 0 ? std::min(options.limit, decode::most_places) : decode::most_places;
  if (places > most)
    throw Error("a row would have " + std::to_string(places) + " positions; the limit is " + std::to_string(most));
  if (places <= capacity) return;
  while (capacity < places) capacity *= 2;
  if (options.limit > 0) capacity = std::min(capacity, options.limit);
  for (CacheState& state : states) memory_moved(state.grow(past, capacity));
}

const StepPlayers::Function& Predictor::Data::advance(const ArrayView& tokens, const std::vector<std::int64_t>& counts,
                                                      bool wanted) {
  if (past.empty()) throw Error("a step needs a batch: call begin first");
  const auto count = std::ssize(past);
  if (tokens.dtype() != Dtype::int64 || tokens.shape().size() != 2 || tokens.shape()[0] != count ||
      tokens.shape()[1] < 1)
    throw ShapeError("the tokens of a step must be int64 [" + std::to_string(count) + ", t] with t at least 1, got " +
                     to_string(ValueType{tokens.dtype(), tokens.shape()}));
  const std::int64_t columns = tokens.shape()[1];
  if (!counts.empty() && counts.size() != past.size())
    throw Error("counts must have one number for each of the " + std::to_string(count) + " rows, got " +
                std::to_string(counts.size()));
  next_past.assign(past.begin(), past.end());
  for (std::size_t i = 0; i < past.size(); ++i) {
    const std::int64_t more = counts.empty() ? columns : counts[i];
    if (more < 0 || more > columns)
      throw Error("row " + std::to_string(i) + " cannot read " + std::to_string(more) + " of " +
                  std::to_string(columns) + " tokens");
    next_past[i] += more;
  }
  make_room(*std::ranges::max_element(next_past));
  StepPlayers::Function& known = step_player(columns, wanted);
  tokens.copy_to(known.notes.tokens.data());
  std::copy(past.begin(), past.end(), known.notes.past.as<std::int64_t>());
  known.player.play(known.notes.feeds, 0);
  past.swap(next_past);
  return known;
}

}  // namespace xtape
