/// Predictors: play a function of a model piece by piece, keeping what was computed for earlier pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/owner.hpp"

namespace xtape {

struct PredictorOptions {
  std::string stepped = "tokens";  ///< The input, int [rows, t], that comes in pieces. All others are fixed.
  std::int64_t capacity = 32;      ///< Positions per row that caches hold initially; doubled when full.
  std::int64_t limit = 0;          ///< The most positions of a row; 0: no limit.
  std::size_t players = 32;        ///< The most players kept of each kind; the least recently used is dropped.
  std::optional<PlayerOptions> player;  ///< How players are made; empty: as the model's. Carries are ignored.
};

/// Plays one function of a model in mode predict. The function takes the tokens [rows, t] that come next in each row,
/// and any number of fixed inputs, given once per batch. What depends only on fixed inputs is computed once, when the
/// batch begins; caches stay in place from step to step.
///
/// Each combination of rows, tokens per step, capacity and sizes of the fixed inputs is recorded and planned when it
/// first occurs; other steps only play, without allocating. For one thread at a time. The model must outlive the
/// predictor and stay where it is.
class Predictor {
 public:
  /// Throws Error if there is no such function or an option is out of range, DefinitionError if the function has no
  /// stepped input, or it is not an int of two sizes [rows, tokens].
  explicit Predictor(const Model& model, const std::string& function = "logits", const PredictorOptions& options = {});

  /// Begins a batch, in which no row has a position yet. `fixed` are the arrays of all fixed inputs, with `rows` rows,
  /// read during the call only. Each of these rows becomes `repeat` consecutive rows of the batch (the hypotheses of a
  /// sentence). Throws Error, DtypeError or ShapeError if the arrays do not fit the function, and what recording
  /// throws.
  void begin(std::int64_t rows, const NamedArrays& fixed = {}, std::int64_t repeat = 1);

  /// Gives the caches of this batch room for `places` positions per row, so that no player is planned for the
  /// capacities in between. Throws Error above the limit, or without a batch.
  void reserve(std::int64_t places);

  /// Plays the next tokens, int64 [rows, t] with t >= 1, and returns the function's first result, [rows, t, …], valid
  /// until the next call. Row i advances by counts[i] <= t positions (by t if `counts` is empty); its other tokens are
  /// padding, which later steps do not see. Throws Error without a batch, for wrong counts or if a row would exceed the
  /// limit, ShapeError for tokens of another type, and what recording and playing throw; then no row has advanced.
  const ArrayView& step(const ArrayView& tokens, const std::vector<std::int64_t>& counts = {});

  /// Reorders, repeats and drops rows: row i continues from where row rows[i] is now. Throws Error if `rows` is empty
  /// or one is out of range.
  void select(const std::vector<std::int32_t>& rows);

  std::int64_t rows() const;                      ///< The rows of the batch; 0 before the first one.
  const std::vector<std::int64_t>& past() const;  ///< Per row: its number of positions so far.
  std::int64_t capacity() const;                  ///< Positions per row that the caches hold now.
  std::int64_t planned() const;                   ///< Players planned so far.
  int threads() const;                            ///< The most threads that a play uses.

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
