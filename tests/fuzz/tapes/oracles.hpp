/// The checks that every tape must pass.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trial.hpp"

namespace xtape::fuzz {

/// A check. `run` returns nullopt if it passes, else a description of the failure.
struct Check {
  std::string name;
  std::function<std::optional<std::string>(Trial&)> run;
};

/// - The way `other` agrees with the reference: integers and flags exactly, floats within a tolerance that depends on
///   the condition of the program. The condition is measured by the difference of float32 and float64.
Check same_as_reference(const Way& other);
/// - Equal bits: on `threads` threads, real or simulated, and on one; in the third play and in the first; with and
/// without reuse of memory;
///   in the least memory and with all values kept.
Check same_bits_on_threads(const Way& way, int threads);
Check same_bits_on_simulated(int threads);
Check same_bits_again(const Way& way);
Check same_bits_without_reuse();
Check same_bits_in_least_memory();
/// - A tape that is saved and loaded has the same text, and the same bits on `threads` threads; also after gradients
/// are
///   recorded on both.
Check same_after_saving(int threads);
/// - Types are as recorded, and no two buffers that are alive at the same time overlap.
Check types_as_recorded();
Check buffers_apart(bool least_memory = false);
/// - float32 agrees with float64, within a wide tolerance.
Check single_as_twofold(const Way& way);
/// - The gradient's product with a direction is the central difference along it, in float64.
Check finite_differences();
/// - <J v, u> = <v, J' u>, where J v is computed by differentiating the first gradient, and by jvp.
Check adjoint();
/// - Sparse Jacobians, whose patterns are found on the tape, have all elements of dense ones that are not 0.
Check sparse_as_dense();
/// - The program mapped over the inputs of two plays gives the values of both.
Check mapped_as_alone();
/// - A nesting of grad, jvp, vmap and bodies, chosen by the seed, gives the same values in another writing: tangents
///   from gradients, gradients from tangents, mapped functions by loops and by scans, with and without segments, bodies
///   as checkpoints, loops, branches and with rules of their own. Tangents of the nesting are as differences say.
Check nested(std::uint64_t seed);
/// - First and second derivatives, backward and forward, by the sources of the program are the same whether these are
///   constants or inputs. In the second check, they are outside of a nesting that the seed chooses.
Check by_constants(std::uint64_t seed);
Check nested_by_constants(std::uint64_t seed);
/// - The program, written as a definition, gives the same values.
Check same_as_definition();

/// All checks, with every way of playing.
std::vector<Check> all_checks();
/// The checks for a seed: always all passes compared with the reference, and equal bits on two threads; of the others,
/// which take most of the time, some chosen by the seed.
std::vector<Check> checks_for(std::uint64_t seed);

struct Failure {
  std::string check;
  std::string what;
};
/// The first check that fails, or throws.
std::optional<Failure> first_failure(const Recipe& recipe, const std::vector<Check>& checks);

}  // namespace xtape::fuzz
