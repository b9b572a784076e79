/// Predictors play a function of a model chunk by chunk, keeping the cached values of earlier chunks.
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
  std::string stepped = "tokens";  ///< The input, int [rows, t], that is given in chunks. All other inputs are fixed.
  /// The initial number of positions per row in caches. It doubles when the caches are full.
  std::int64_t capacity = 32;
  std::int64_t limit = 0;  ///< The most positions of a row. 0: no limit.
  /// The most players to keep, separately for steps and for values of fixed inputs. The least recently used player is
  /// dropped.
  std::size_t players = 32;
  std::optional<PlayerOptions> player =
      {};  ///< The options of players. Empty: those of the model. Carries are ignored.
};

/// Plays one function of a model in mode predict. The function takes the next tokens [rows, t] of each row, and any
/// number of fixed inputs, given once per batch. Values that depend only on fixed inputs are computed once, at the
/// beginning of the batch. Caches stay in place between steps.
///
/// The first step with a combination of rows, tokens, capacity and sizes of the fixed inputs records and plans the
/// function. Other steps only play, without allocating. Only one thread at a time may use a predictor. The model must
/// outlive the predictor and must not be moved.
class Predictor {
 public:
  /// Throws Error if there is no such function or an option is out of range. Throws DefinitionError if the function has
  /// no stepped input, or if this input is not an int of two sizes [rows, tokens].
  explicit Predictor(const Model& model, const std::string& function = "logits", const PredictorOptions& options = {});

  /// Begins a batch, in which no row has a position yet. `fixed` contains the arrays of all fixed inputs, with `rows`
  /// rows. Only `begin` reads the arrays. Each of these rows becomes `repeat` consecutive rows of the batch (the
  /// hypotheses of a sentence). Throws Error, DtypeError or ShapeError if the arrays do not fit the function. Errors of
  /// recording propagate.
  void begin(std::int64_t rows, const NamedArrays& fixed = {}, std::int64_t repeat = 1);

  /// Reserves `places` positions per row in the caches of this batch. No players are then planned for smaller
  /// capacities. Throws Error if `places` is above the limit or there is no batch.
  void reserve(std::int64_t places);

  /// Plays the next tokens, int64 [rows, t] with t >= 1, and returns the function's first result, [rows, t, …], valid
  /// until the next call. Row i advances by counts[i] <= t positions, or by t if `counts` is empty. Further tokens of a
  /// row are padding, which later steps ignore. Throws Error if there is no batch, a count is wrong, or a row would
  /// exceed the limit. Throws ShapeError if the tokens have another type. Errors of recording and playing propagate.
  /// After an error, no row has advanced.
  const ArrayView& step(const ArrayView& tokens, const std::vector<std::int64_t>& counts = {});

  /// Advances the rows as `step` does, but computes only what later steps need, without a result: for the parts of a
  /// prompt whose predictions are not wanted. Throws as `step` does.
  void read(const ArrayView& tokens, const std::vector<std::int64_t>& counts = {});

  /// Reorders, repeats and drops rows. Row i continues from the current state of row rows[i]. Throws Error if `rows` is
  /// empty or an index is out of range.
  void select(const std::vector<std::int32_t>& rows);

  std::int64_t rows() const;                      ///< The rows of the batch. 0 before the first batch.
  const std::vector<std::int64_t>& past() const;  ///< For each row, its number of positions so far.
  std::int64_t capacity() const;                  ///< The current number of positions per row in the caches.
  std::int64_t planned() const;                   ///< The number of players planned so far.
  int threads() const;                            ///< The most threads that a play uses.

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
