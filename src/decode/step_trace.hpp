/// Finds the first call of a function whose values differ between two plays that should agree.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

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

}  // namespace xtape::decode
