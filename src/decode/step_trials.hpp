/// A function on random inputs, to be played whole and piece by piece.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "step_trace.hpp"
#include "xtape/predict.hpp"

namespace xtape::decode {

/// Numbers that are the same on every machine.
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
  std::int64_t sentences = 0;  ///< Of the fixed inputs …
  std::int64_t repeat = 1;     ///< … and rows of each, as a search has them.
  std::int64_t tokens = 0;
  NamedSizes sizes;  ///< Of the whole, with all rows.
  std::string rows_name, tokens_name;
  std::int64_t rows() const { return sentences * repeat; }
};

class StepTrials {
 public:
  /// Of a function that takes int `tokens` [rows, tokens]; all other inputs are fixed.
  StepTrials(Model& model, const std::string& function, const StepSizes& sizes);

  /// Plays the whole once: how many classes there are is known then, and tokens are drawn. Why the function gives
  /// nothing for each token, or empty.
  std::string begin();
  /// Throws DefinitionError where a place depends on later ones.
  void check_ahead();
  /// Throws DefinitionError where pieces give something else than the whole. Else the greatest difference, as a share
  /// of the greatest number of the whole.
  double check_pieces(const std::vector<std::int64_t>& pieces);

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;  // of one length

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
  Store fixed_;  // of all rows; the rows of one sentence have what the first of them has
  Named<std::int64_t> row_axes_;
  Rows said_;                           // per row: all of its tokens, those to come as well
  std::vector<std::int64_t> past_;      // per row
  std::vector<std::int32_t> sentence_;  // per row
  std::int64_t classes_ = 0;
  std::int64_t different_ = 0;  // tokens that are drawn
  Store traced_arrays_;
};

}  // namespace xtape::decode
