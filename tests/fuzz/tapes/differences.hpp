/// How far arrays are apart, and how far they may be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trial.hpp"

namespace xtape::fuzz {

struct Difference {
  std::int64_t place = 0;
  double a = 0, b = 0;
  double relative = 0;  ///< To the greatest finite number of the second array, or to 1. Infinite where one is NaN.
  std::string described(const std::string& first, const std::string& second) const;
};

Array as_doubles(const ArrayView& view);

/// Where two arrays of one type differ most, if by more than `tolerance` (integers and flags: if at all). NaN is as NaN,
/// and an infinity as itself.
std::optional<Difference> furthest(const Array& a, const Array& b, double tolerance);

/// What rounding may do to output `k` of a play, in the width that it is recorded in.
double tolerance_of(Trial& trial, std::size_t play, std::size_t k);

/// How far output `k` moves where what comes in moves by float32's rounding, relative as in Difference.
double noise_of(Trial& trial, std::size_t play, std::size_t k);

/// Whether the program can be recorded in both widths and computes the same in both: it draws nothing whose bits depend
/// on the width.
bool comparable_widths(Trial& trial);

}  // namespace xtape::fuzz
