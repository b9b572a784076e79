/// Checkpoints: a directory each, complete or not there at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape::train {

/// What a run continues from, besides arrays.
struct State {
  std::int64_t step = 0;     ///< Updates made; the schedule counts these.
  std::uint64_t cursor = 0;  ///< Micro-batches played: the place in the data order, and the random step.
  std::uint64_t seed = 0;    ///< Of the random ops and the data order.
};

/// Writes weights.safetensors, optimizer.safetensors and state.json to a directory beside `path`, flushes them to the
/// disk, then renames the directory to `path` (in exchange for what is there). A crash leaves the old one or the new
/// one.
void write_checkpoint(const std::string& path, const Store& weights, const Store& optimizer, const State& state);

/// Throws FileError where the directory holds no checkpoint.
State read_state(const std::string& path);

/// The checkpoint directories of a run by ascending step. What a crash left half-written is not among them.
std::vector<std::string> checkpoints(const std::string& directory);
std::string checkpoint_name(std::int64_t step);  ///< "00000250".

/// Removes all but the last `keep` checkpoints (at least one stays), and what crashes left.
void remove_old_checkpoints(const std::string& directory, std::int64_t keep);

/// Writes a small file whole: beside `path`, flushed, then renamed to it.
void write_file(const std::string& path, const std::string& text);

}  // namespace xtape::train
