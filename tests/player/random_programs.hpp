/// Tapes made at random, for comparing one way of playing with another.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "xtape/player.hpp"
#include "xtape/tape.hpp"

namespace xtape {

struct RandomProgram {
  Tape tape;
  Vars inputs;
  std::vector<std::vector<Array>> values;  ///< Per play, one array per input that is fed.
  Vars fed;
  Vars outputs;
  std::vector<Carry> carries;

  std::vector<Feed> feeds(std::size_t play) const;
};

/// The program of a seed: the same ops on the same numbers for float32 and float64.
RandomProgram random_program(std::uint64_t seed, Dtype dtype);

}  // namespace xtape
