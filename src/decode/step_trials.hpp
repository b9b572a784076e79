/// Plays a function on random inputs, both as a whole and piece by piece.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/predict.hpp"

namespace xtape::decode {

// Finds the first call of a function whose values differ between two plays that should agree.

/// A function and the inputs on which it is played.
struct Traced {
  const Model& model;
  std::string function;
  std::string stepped;      ///< The input to divide into pieces.
  std::string tokens_size;  ///< The named size that is the length of this input.
  NamedSizes sizes;         ///< The sizes of the whole input.
  NamedArrays inputs;       ///< The arrays of the whole input.
  double tolerance = 0;     ///< The allowed difference, relative to the largest magnitude of the same value.
};

/// Returns the first call whose values differ between the whole and two pieces, where the second piece begins at
/// position `cut`: "cumsum, ffn (model.json, block 'ffn', line 12)". Returns an empty text if there is none.
std::string first_unlike_whole(const Traced& traced, std::int64_t cut);

/// Returns the first call whose values before position `cut` change if `others` replaces the tokens from `cut` on.
/// Returns an empty text if there is none.
std::string first_looking_ahead(const Traced& traced, std::int64_t cut, const Array& others);

std::vector<double> numbers_of(const ArrayView& view);  ///< The elements of an array of any dtype, row-major.
/// Returns the absolute difference of two numbers. Equal numbers and two NaN have the difference 0. If the difference
/// of other numbers is not finite, returns infinity.
double distance(double a, double b);
double greatest_finite(const std::vector<double>& numbers);  ///< The largest magnitude; 0 if no number is finite.

// Checks that a function gives the same results, no matter whether it is played piece by piece or as a whole.

/// The way in which a function was played, and the result.
struct StepCheck {
  std::string unfit;  ///< The reason if the function cannot be played piece by piece; otherwise empty.
  std::int64_t rows = 0;
  std::int64_t tokens = 0;           ///< The number of tokens of a row.
  std::vector<std::int64_t> pieces;  ///< The number of tokens of each piece.
  /// The largest difference between pieces and whole, relative to the largest magnitude of the whole.
  double difference = 0;
};

/// Plays `function` on random tokens: once on whole rows, and once piece by piece with a predictor. There are pieces of
/// one token and pieces of several tokens. The rows have different lengths and are reordered. Sizes that are not
/// `given` are small and differ from the model's own sizes. If the definition rejects them, smaller sizes are tried.
/// Throws DefinitionError if the results differ or if a position depends on later positions. The message names the
/// first call whose values differ. Errors of recording and playing propagate.
StepCheck check_steps(Model& model, const std::string& function, const NamedSizes& given = {});

/// Fills every weight with random numbers, so that no factor of 0 hides a difference. The elements of vectors are
/// around 1, because many vectors are gains. Initialising the model would take longer and would leave zeros.
void draw_weights(const Model& model);

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
