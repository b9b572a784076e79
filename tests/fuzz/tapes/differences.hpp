/// Differences of arrays, and tolerances for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trial.hpp"

namespace xtape::fuzz {

struct Difference {
  std::int64_t place = 0;
  double a = 0, b = 0;
  double relative = 0;  ///< To the largest finite number of the second array, or to 1. Infinite if one is NaN.
  std::string described(const std::string& first, const std::string& second) const;
};

Array as_doubles(const ArrayView& view);

/// The largest difference of two arrays of the same type, if it is more than `tolerance` (for integers and flags: if it
/// is not 0). NaN equals NaN, and an infinity equals itself.
std::optional<Difference> furthest(const Array& a, const Array& b, double tolerance);

/// The floats of an array, changed by about a hundred times float64's rounding. Other arrays stay as they are.
Array beside(const Array& array);

/// How the float64 arrays `other` differ from `first` by more than rounding. `moved` are those of inputs that are
/// `beside` the inputs of `first`. Arrays that are not finite are not compared.
std::optional<std::string> beyond_rounding(const std::vector<Array>& first, const std::vector<Array>& other,
                                           const std::vector<Array>& moved);

/// The effect that rounding may have on output `k` of a play, in the width in which it is recorded.
double tolerance_of(Trial& trial, std::size_t play, std::size_t k);

/// Whether carried floats, which take the rounding of earlier plays along, may change integers or flags of later plays.
bool rounding_flips(Trial& trial);

/// The change of output `k` if the inputs change by float32's rounding, relative as in Difference.
double noise_of(Trial& trial, std::size_t play, std::size_t k);

/// Whether the program can be recorded in both widths and computes the same in both: it has no random numbers that
/// depend on the width.
bool comparable_widths(Trial& trial);

}  // namespace xtape::fuzz
