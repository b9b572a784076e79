/// What a tape holds. Private to the tape layer.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

struct TapeData {
  Mode mode = Mode::train;
  std::deque<Node> nodes;  // a deque: references to nodes survive appending
  std::vector<Adjoint> adjoints;
  std::vector<ValueId> results;
  std::unordered_map<std::string, std::int32_t> inputs;          // by name
  std::unordered_map<const void*, std::int32_t> parameters;      // by the array's memory
  std::unordered_map<std::uint64_t, std::int32_t> occurrences;   // by path, line and op
  Site site;                                                     // of what is recorded now
  bool site_is_fixed = false;                                    // copied as it stands, not counted
  Provenance of;
  std::int32_t sweeps = 0;
  std::uint32_t next_serial = 1;
};

}  // namespace xtape
