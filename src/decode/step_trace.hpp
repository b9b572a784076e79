/// Finds the first call of a function whose values differ between two plays that should agree.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// A function, and the inputs that it is played on.
struct Traced {
  const Model& model;
  std::string function;
  std::string stepped;      ///< The input that is divided into pieces.
  std::string tokens_size;  ///< The name of its length in the signature.
  NamedSizes sizes;         ///< The sizes of the whole.
  NamedArrays inputs;       ///< The arrays of the whole.
  double tolerance = 0;     ///< The allowed difference, relative to the largest magnitude of the same value.
};

/// The first call that gives other values for two pieces, of which the second begins at position `cut`, than for the
/// whole: "cumsum, ffn (model.json, block 'ffn', line 12)". Empty if none is found.
std::string first_unlike_whole(const Traced& traced, std::int64_t cut);

/// The first call whose values before position `cut` change if the tokens from `cut` on are replaced by those of
/// `others`. Empty if none is found.
std::string first_looking_ahead(const Traced& traced, std::int64_t cut, const Array& others);

std::vector<double> numbers_of(const ArrayView& view);  ///< The elements, row-major, of any dtype.
/// The absolute difference of two numbers: 0 if they are equal or both NaN, infinity if it is not finite otherwise.
double distance(double a, double b);
double greatest_finite(const std::vector<double>& numbers);  ///< The largest magnitude; 0 if no number is finite.

}  // namespace xtape::decode
