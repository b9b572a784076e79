/// Which call of a function is the first whose values depend on what they must not depend on.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// What is looked at: a function, and what it is played on.
struct Traced {
  const Model& model;
  std::string function;
  std::string stepped;      ///< The input that comes piece by piece …
  std::string tokens_size;  ///< … and what the signature calls its length.
  NamedSizes sizes;         ///< Of the whole, as are …
  NamedArrays inputs;       ///< … the arrays.
  double tolerance = 0;     ///< What counts as equal, as a share of the greatest number beside it.
};

/// The first call that gives other values for two pieces, the second from place `cut` on, than for the whole: "cumsum,
/// ffn (model.json, block 'ffn', line 12)". Empty where none is found.
std::string first_unlike_whole(const Traced& traced, std::int64_t cut);

/// The first call whose values in front of place `cut` change where the tokens from there on become those of `others`.
std::string first_looking_ahead(const Traced& traced, std::int64_t cut, const Array& others);

std::vector<double> numbers_of(const ArrayView& view);  ///< The elements, row-major, of any dtype.
/// Between numbers that may not be finite: 0 where they are the same, infinity where one alone is finite.
double distance(double a, double b);
double greatest_finite(const std::vector<double>& numbers);  ///< In size.

}  // namespace xtape::decode
