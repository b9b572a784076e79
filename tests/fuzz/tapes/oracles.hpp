/// What must be true of every tape.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trial.hpp"

namespace xtape::fuzz {

/// Something that must be true; what it returns says how it is not.
struct Check {
  std::string name;
  std::function<std::optional<std::string>(Trial&)> run;
};

/// - The way `other` agrees with the reference: integers and flags exactly, floats as far as the program's condition
///   lets them. (That is measured: float32 is as much farther from float64 as its rounding is coarser.)
Check same_as_reference(const Way& other);
/// - Equal bits: on so many threads as on one; in the third play as in the first; with and without reuse of memory.
Check same_bits_on_threads(const Way& way, int threads);
Check same_bits_again(const Way& way);
Check same_bits_without_reuse();
/// - Types are as recorded, and no two buffers that are alive at one time overlap.
Check types_as_recorded();
Check buffers_apart();
/// - float32 agrees with float64, loosely.
Check single_as_twofold(const Way& way);
/// - The gradient's product with a direction is the central difference along it, in float64.
Check finite_differences();
/// - <J v, u> = <v, J' u>, where J v comes from a second sweep over the first.
Check adjoint();
/// - The program, written as a definition, gives the same values.
Check same_as_definition();

/// All of them, with every way of playing.
std::vector<Check> all_checks();
/// Those tried for a seed: everything on against the reference, and the equal bits of two threads, always; of the others,
/// which take most of the time, some chosen by the seed.
std::vector<Check> checks_for(std::uint64_t seed);

struct Failure {
  std::string check;
  std::string what;
};
/// The first check that fails, or throws.
std::optional<Failure> first_failure(const Recipe& recipe, const std::vector<Check>& checks);

}  // namespace xtape::fuzz
