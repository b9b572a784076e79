/// Plays a function on random inputs, both as a whole and piece by piece.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "decode/step_trace.hpp"
#include "xtape/predict.hpp"

namespace xtape::decode {

/// Random numbers that are the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : words_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(words_() >> 11U) * std::ldexp(1.0, -53);
  }
  std::int64_t integer(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(words_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 words_;
};

/// The sizes of a trial.
struct StepSizes {
  std::int64_t sentences = 0;  ///< The rows of the fixed inputs.
  std::int64_t repeat = 1;     ///< The number of rows per sentence, as in a beam search.
  std::int64_t tokens = 0;
  NamedSizes sizes;                    ///< All sizes of the function for the whole input with rows() rows.
  std::string rows_name, tokens_name;  ///< The names of the two sizes of the tokens.
  std::int64_t rows() const { return sentences * repeat; }
};

class StepTrials {
 public:
  /// `function` takes int `tokens` [rows, tokens]; all other inputs are fixed.
  StepTrials(Model& model, const std::string& function, const StepSizes& sizes);

  /// Plays the whole input once to find the number of classes, and draws the tokens. Returns the reason if the function
  /// does not return classes for each token, otherwise an empty text.
  std::string begin();
  /// Throws DefinitionError if a position depends on later positions.
  void check_ahead();
  /// Returns the largest difference between the pieces and the whole, relative to the largest magnitude of the whole.
  /// Throws DefinitionError if the difference is too large.
  double check_pieces(const std::vector<std::int64_t>& pieces);

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;  // all rows have the same length

  std::string whose() const { return "function '" + function_ + "' of model '" + model_.name() + "'"; }
  std::string counted() const;
  void draw(std::vector<std::int64_t>& row, std::int64_t from);
  std::int64_t other_than(std::int64_t token) const;
  Array drawn(const ValueType& type);
  Store fixed_of(const std::vector<std::int32_t>& sentences) const;
  Array whole(const Rows& rows);
  Traced traced();
  double compare(const ArrayView& result, const std::vector<std::int64_t>& counts,
                 const std::vector<std::int64_t>& pieces);
  [[noreturn]] void refuse(std::size_t row, std::int64_t place, std::int64_t k, double got, double wanted,
                           const std::vector<std::int64_t>& pieces);
  void select(Predictor& predictor, const std::vector<std::int32_t>& rows);

  Model& model_;
  std::string function_;
  StepSizes sizes_;
  double tolerance_;
  Draws draws_{1};
  Store fixed_;                         // the fixed inputs of all rows; only the last row of each sentence is used
  Named<std::int64_t> row_axes_;        // per input: the axis of its rows, or -1
  Rows said_;                           // per row: all of its tokens, including tokens that are not played yet
  std::vector<std::int64_t> past_;      // per row: the number of played tokens
  std::vector<std::int32_t> sentence_;  // per row: its sentence
  std::int64_t classes_ = 0;
  std::int64_t different_ = 0;  // tokens are drawn below this number
  Store traced_arrays_;
};

}  // namespace xtape::decode
