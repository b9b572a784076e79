/// Checkpoints: a directory each, complete or not there at all.
#pragma once

#include <cstdint>
#include <functional>
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
  bool evaluation_due = false;     ///< An interruption has cut this step's evaluation short: it is still to be made.
};

/// Writes weights.safetensors, optimizer.safetensors, state.json and, where there are any, the states that the next
/// batch goes on from, carried.safetensors, to a directory beside `path`, flushes them to the disk, then renames the
/// directory to `path` (in exchange for what is there). A crash leaves the old one or the new one.
void write_checkpoint(const std::string& path, const Store& weights, const Store& optimizer, const State& state,
                      const Store& carried = {});

/// state.json in a checkpoint's directory. Reading throws FileError, with the key, where it is missing or says what no
/// run can be in.
void write_state(const std::string& path, const State& state);
State read_state(const std::string& path);
/// The states that the checkpoint's next batch goes on from. Throws FileError where they are others than `states`.
Store read_carried(const std::string& path, const std::vector<CarriedState>& states);

/// The checkpoint directories of a run by ascending step. What a crash left half-written is not among them. Throws
/// FileError where the directory cannot be listed.
std::vector<std::string> checkpoints(const std::string& directory);
std::string checkpoint_name(std::int64_t step);            ///< "00000250".
std::int64_t step_of_checkpoint(const std::string& path);  ///< By its name; -1: it is not a checkpoint's.

/// Removes all but the last `keep` checkpoints (0: none of them) and that of step `best`, and what crashes left.
void remove_old_checkpoints(const std::string& directory, std::int64_t keep, std::int64_t best);

/// Renames the checkpoints of steps after `step`, so that they are none any more: "00000250.set-aside".
void set_aside_after(const std::string& directory, std::int64_t step);

/// Calls `load` with the last checkpoint of `found`. Where it throws an Error, the error thrown names the last one before
/// it with which `load` does not.
void load_last(const std::vector<std::string>& found, const std::function<void(const std::string&)>& load);

/// Gives the model the weights of the chosen checkpoint among those in `directory`; returns its step (of an average,
/// the last one's). Throws FileError where it is not there; checkpoints that a
/// training replaces while they are read are no error.
std::int64_t load_checkpoint(Model& model, const std::string& directory, const CheckpointChoice& choice);

}  // namespace xtape::train
