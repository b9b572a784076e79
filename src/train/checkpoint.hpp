/// Checkpoints: a directory each, complete or not there at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carried.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// What a run continues from, besides arrays.
struct State {
  std::int64_t step = 0;           ///< Updates made; the schedule counts these.
  std::uint64_t cursor = 0;        ///< Micro-batches played: the place in the data order, and the random step.
  std::uint64_t seed = 0;          ///< Of the random ops and the data order.
  std::int64_t best_step = -1;     ///< The step of the best evaluation; -1 before the first finite one.
  double best = 0;                 ///< What it measured: the lower the better.
  std::int64_t stale = 0;          ///< Evaluations since.
  std::int64_t evaluated = -1;     ///< The step of the last evaluation; -1 before the first.
  std::int64_t epoch_batches = 0;  ///< Batches an epoch, which `cursor` counts; 0: there are no epochs.
};

/// Writes weights.safetensors, optimizer.safetensors, state.json and, where there are any, the states that the next
/// batch goes on from, carried.safetensors, to a directory beside `path`, flushes them to the disk, then renames the
/// directory to `path` (in exchange for what is there). A crash leaves the old one or the new one.
void write_checkpoint(const std::string& path, const Store& weights, const Store& optimizer, const State& state,
                      const Store& carried = {});

/// Throws FileError where the directory holds no checkpoint.
State read_state(const std::string& path);
/// The states that the checkpoint's next batch goes on from. Throws FileError where they are others than `states`.
Store read_carried(const std::string& path, const std::vector<CarriedState>& states);

/// The checkpoint directories of a run by ascending step. What a crash left half-written is not among them.
std::vector<std::string> checkpoints(const std::string& directory);
std::string checkpoint_name(std::int64_t step);  ///< "00000250".

/// Removes all but the last `keep` checkpoints (0: none of them) and that of step `best`, and what crashes left.
void remove_old_checkpoints(const std::string& directory, std::int64_t keep, std::int64_t best);

/// Gives the model the weights of the chosen checkpoint among those in `directory`; returns its step (of an average,
/// the last one's). Throws FileError where it is not there.
std::int64_t load_checkpoint(Model& model, const std::string& directory, const CheckpointChoice& choice);

/// Writes a small file whole: beside `path`, flushed, then renamed to it.
void write_file(const std::string& path, const std::string& text);

}  // namespace xtape::train
