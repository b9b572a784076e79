/// The data members of a Predictor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decode/recording.hpp"
#include "decode/row_buffer.hpp"
#include "model/recording/function_cache.hpp"
#include "xtape/predict.hpp"

namespace xtape {

namespace decode {
/// The limits on the rows of a batch and on the positions of a row. Rows are numbered in int32.
inline constexpr std::int64_t most_rows = INT32_MAX, most_places = INT32_MAX;

/// The inputs of a player of steps.
struct StepInputs {
  Array tokens;  // [rows, tokens]
  Array past;    // [rows]
  std::vector<Feed> feeds;
};
/// Players that compute the values that depend only on fixed inputs. The notes of a function contain the row axis of
/// each result, or -1 for a result without rows.
using FixedPlayers = FunctionCache<std::vector<std::int64_t>>;
using StepPlayers = FunctionCache<StepInputs>;
}  // namespace decode

struct Predictor::Data {
  Data(const Model& given_model, const std::string& given_function, const PredictorOptions& given_options);

  void begin(std::int64_t rows, const NamedArrays& fixed, std::int64_t repeat);
  /// Plays the next tokens, and returns the function that it played. Its first result is that of the step, if `wanted`.
  const decode::StepPlayers::Function& advance(const ArrayView& tokens, const std::vector<std::int64_t>& counts,
                                               bool wanted);
  void select(const std::vector<std::int32_t>& rows);

  std::string whose() const { return "function '" + function + "' of model '" + model->name() + "'"; }
  NamedSizes sizes_of(const NamedArrays& arrays) const;
  NamedSizes with_tokens(NamedSizes sizes, std::int64_t count, std::int64_t tokens) const;
  decode::Recording record(const NamedSizes& sizes, std::int64_t count, std::int64_t tokens, std::int64_t places) const;
  /// Returns the split of a recording. It is the same for any number of rows and places.
  const decode::StepSplit& split_of(const decode::Recording& recording, std::int64_t count, std::int64_t tokens,
                                    std::int64_t places);
  decode::FixedPlayers::Function& fixed_player(std::int64_t count);
  void store_boundary(const decode::FixedPlayers::Function& fixed, std::int64_t repeat);
  decode::StepPlayers::Function& step_player(std::int64_t tokens, bool wanted);
  decode::StepPlayers::Recording record_step(std::int64_t count, std::int64_t tokens, bool wanted);
  void share_result(decode::StepPlayers::Function& known);
  void hold_states(const decode::Recording& recording);
  void make_room(std::int64_t places);
  /// If memory was reallocated (`elsewhere`), discards the players of steps, because they use the old addresses of
  /// states and boundary values.
  void memory_moved(bool elsewhere) {
    if (elsewhere) step_players.clear();
  }

  /// The last split, with the sizes and ops for which it is valid.
  struct KnownSplit {
    NamedSizes sizes;
    std::int64_t tokens;
    decode::Recording recording;
    decode::StepSplit split;
  };

  const Model* model;
  std::string function;
  PredictorOptions options;
  std::string rows_size, tokens_size;  // the names of the two sizes of the tokens in the signature
  int threads = 1;

  FunctionKey step_key;  // a member, so that a step with known sizes allocates nothing
  decode::FixedPlayers fixed_players;
  decode::StepPlayers step_players;
  std::vector<decode::CacheState> states;
  bool states_known = false;
  std::optional<KnownSplit> known_split;
  std::vector<decode::RowBuffer> boundary;
  std::vector<std::int64_t> boundary_axes;

  NamedSizes fixed_sizes;             // the sizes of the batch without the number of rows
  std::vector<std::int64_t> past;     // per row: the number of earlier tokens
  std::vector<std::int32_t> origins;  // per row: its row in the fixed inputs
  std::vector<std::int64_t> next_past;
  std::int64_t capacity = 0;  // number of positions of a row in the caches
  Array result_memory;        // shared by the step players
  ArrayView result;
};

}  // namespace xtape
