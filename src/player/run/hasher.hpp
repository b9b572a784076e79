/// Hashes the values of plays.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "player/plan/plan.hpp"
#include "xtape/player.hpp"

namespace xtape {

class Hasher {
 public:
  /// Allocates all memory that hashing needs.
  Hasher(const PlannedProgram& planned, int threads);
  /// Hashes the inputs, states and parameters before the first step. `memory` is the player's memory.
  void hash_sources(const PlannedProgram& planned, const std::vector<Array>& memory);
  /// Hashes the outputs of a step, which are at these addresses.
  void hash_outputs(std::size_t step, void* const* out);
  std::vector<Digest> digests(const PlannedProgram& planned) const;

 private:
  struct Value {
    std::size_t place = 0;  ///< For a source: the index of its buffer. Otherwise: the index of the step.
    std::size_t output = 0;
    std::size_t bytes = 0;
    std::function<void(const void*, void*)> copy = {};  ///< Copies to row-major order. Empty if the output is dense.
    std::uint64_t hash = 0;
  };
  void hash(Value& value, const void* elements);

  int threads_;
  std::vector<Value> sources_, outputs_;
  /// Per step: the index in `outputs_` of the first output of the step. One further entry has the number of outputs.
  std::vector<std::size_t> first_;
  Array dense_;  ///< Memory for the copies.
  std::vector<std::uint64_t> pieces_;
};

}  // namespace xtape
