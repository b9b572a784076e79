/// Playing a function of a model piece by piece: what was computed of earlier pieces is kept, not computed again.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 8
#error "this layer of xtape may not see the decode layer"
#endif

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

struct PredictorOptions {
  std::string stepped = "tokens";  ///< The input [rows, t] that is given piece by piece. All others are fixed.
  std::int64_t capacity = 32;      ///< How many positions caches hold at first; doubled when they are full.
  std::int64_t limit = 0;          ///< The most positions that a row may have; 0: there is no limit.
  std::size_t players = 32;        ///< The most players that are kept; the least recently used falls out.
  std::optional<PlayerOptions> player;  ///< How players are made; empty: as the model's. Its carries are not used.
};

/// Plays one function of a model in mode predict. The function takes `tokens` [rows, t], a few more of every row at
/// each step, and any number of fixed inputs, given once per batch. What depends on fixed inputs alone is found on the
/// tape and computed once, when the batch begins; what the ops `cache` keep stays in place from step to step.
///
/// Each combination of rows, tokens a step, capacity and sizes of the fixed inputs is recorded and planned when it
/// first occurs; a step of known sizes only plays. For use by one thread at a time; the model must outlive it.
class Predictor {
 public:
  /// Throws DefinitionError where the function cannot be played so.
  explicit Predictor(const Model& model, const std::string& function = "logits", const PredictorOptions& options = {});
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  ~Predictor();

  /// Begins a batch: `fixed` are the arrays of all fixed inputs, of `rows` rows, and each of these rows is `repeat`
  /// rows of the batch, one after the other (the hypotheses of one sentence). Nothing stands behind any row.
  void begin(std::int64_t rows, const NamedArrays& fixed = {}, std::int64_t repeat = 1);

  /// Makes room for `places` positions at once, where it is known how many there will be: no player is planned for the
  /// capacities between. Throws Error above the limit.
  void reserve(std::int64_t places);

  /// Plays the next tokens, int64 [rows, t], and returns the function's first result, [rows, t, …], valid until the
  /// next call. Then row i has counts[i] more positions behind it (at most t; t where `counts` is empty): tokens beyond
  /// the count are padding that nothing sees later. Throws Error where a row would have more positions than the limit.
  const ArrayView& step(const ArrayView& tokens, const std::vector<std::int64_t>& counts = {});

  /// From now on row i goes on where row rows[i] is now: rows are reordered, repeated and dropped.
  void select(const std::vector<std::int32_t>& rows);

  std::int64_t rows() const;                      ///< 0 before the first batch.
  const std::vector<std::int64_t>& past() const;  ///< Per row: how many positions it has behind it.
  std::int64_t capacity() const;                  ///< How many positions the caches hold at present.
  std::int64_t planned() const;                   ///< How many players were planned so far.
  int threads() const;                            ///< That play.

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace xtape
