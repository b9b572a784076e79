/// Checkpoints. Each checkpoint is a directory that is written atomically.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/trainer/carried.hpp"
#include "xtape/ops.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The file of a run with the weights with which it began, if they came from files.
inline constexpr const char* first_weights_file = "start.safetensors";

/// The settings that determine how much an update reveals about a training row. Both are 0 if the training is not
/// private.
struct UpdatePrivacy {
  double noise_multiplier = 0;
  double rate = 0;  ///< The result of RowDraws::rate().
  bool operator==(const UpdatePrivacy&) const = default;
};

/// The state from which a run continues, apart from its arrays.
struct State {
  std::int64_t step = 0;  ///< The number of updates made, which the schedule counts.
  /// The number of micro-batches played. It is the index of the next batch in the data order, and the random step of
  /// random ops.
  std::uint64_t cursor = 0;
  std::uint64_t seed = 0;          ///< The seed of the random ops and the data order.
  std::int64_t best_step = -1;     ///< The step of the best evaluation; -1 before the first finite one.
  double best = 0;                 ///< The perplexity (or loss) of that evaluation; lower is better.
  std::int64_t stale = 0;          ///< Evaluations since the best one.
  std::int64_t evaluated = -1;     ///< The step of the last evaluation; -1 before the first.
  std::int64_t epoch_batches = 0;  ///< Micro-batches per epoch; 0 if the data has no epochs.
  std::uint64_t order = 0;         ///< The result of Batches::order().
  UpdatePrivacy privacy = {};      ///< The privacy settings of all updates.
  bool evaluation_due = false;     ///< Whether the evaluation of this step was not completed and is due.
};

inline constexpr const char* averages_file = "/ema.safetensors";

/// Writes weights.safetensors, optimizer.safetensors, state.json and, if the next batch continues from states,
/// carried.safetensors, and ema.safetensors if there are averages. Writes the files to a temporary directory next to
/// `path` and flushes them to the disk. Then renames this directory to `path`, or exchanges the two directories if
/// `path` exists. After a crash, `path` is either the old or the new checkpoint. `save_optimizer` receives a file name
/// and writes this file. `complete` is called with the temporary directory before it is renamed. `orders` are those of
/// the weights (Model::orders).
void write_checkpoint(const std::string& path, const Store& weights,
                      const std::function<void(const std::string& file)>& save_optimizer, const State& state,
                      const Store& carried = {}, const Store& averages = {},
                      const std::function<void(const std::string& folder)>& complete = {},
                      const std::map<std::string, Axes>& orders = {});

/// Write and read state.json in the directory of a checkpoint. read_state throws FileError if the file is missing. It
/// also throws FileError if a value is impossible; the message names the key of the value.
void write_state(const std::string& path, const State& state);
State read_state(const std::string& path);
/// Reads the states from which the checkpoint's next batch continues. Throws FileError if they do not match `states`.
Store read_carried(const std::string& path, const std::vector<CarriedState>& states);

/// Returns the paths of a run's checkpoints by ascending step. Leaves out checkpoints that a crash left incomplete.
/// Throws FileError if the directory cannot be listed.
std::vector<std::string> checkpoints(const std::string& directory);
/// Returns the file with the weights with which the run of a checkpoint began, or "" if it has none. It has the weights
/// in blocks, which no training changes and which checkpoints therefore lack.
std::string start_of(const std::string& checkpoint);
std::string checkpoint_name(std::int64_t step);  ///< Returns a name such as "00000250".
/// The step in the directory's name, or -1 if this is not the name of a checkpoint.
std::int64_t step_of_checkpoint(const std::string& path);

/// Removes incomplete checkpoints that crashes left. Also removes all complete checkpoints except the last `keep` ones
/// and that of step `best`. If `keep` is 0, keeps all complete checkpoints. If a checkpoint cannot be removed, calls
/// `warn`; the next call tries again.
void remove_old_checkpoints(const std::string& directory, std::int64_t keep, std::int64_t best,
                            const std::function<void(const std::string& sentence)>& warn = {});

/// Renames the checkpoints of steps after `step` ("00000250.set-aside"), so that they no longer count.
void set_aside_after(const std::string& directory, std::int64_t step);

/// Calls `load` with the last checkpoint of `found`. If this call throws an Error, calls `load` with the earlier
/// checkpoints, latest first, until a call succeeds. Then throws a FileError that names the checkpoint that this call
/// loaded. If no call succeeds, the first error propagates. A CommunicationError propagates at once.
void load_last(const std::vector<std::string>& found, const std::function<void(const std::string&)>& load);

/// Returns the path of a chosen checkpoint. Throws FileError if it is missing, Error if the choice is an average.
std::string chosen_checkpoint(const std::string& directory, const CheckpointChoice& choice);

/// Returns the paths of the chosen checkpoints: several if the choice is an average. Throws FileError if one is
/// missing.
std::vector<std::string> chosen_checkpoints(const std::string& directory, const CheckpointChoice& choice);

/// Calls take(name, mean) with the mean of each array over the files, in the order of the first file. Means are
/// computed in double precision, in the order of the files. Throws FileError if the files do not have the same arrays,
/// or if integers differ.
void for_each_mean(const std::vector<std::string>& files,
                   const std::function<void(const std::string& name, Array mean)>& take);

/// Writes a run whose only checkpoint has the means of weights, and which is like `run` in everything else that a model
/// is used for. Throws FileError.
void write_mean_run(const std::vector<std::string>& files, const std::string& run, std::int64_t step,
                    const std::string& directory);

/// Loads weights from the checkpoints in `directory` into the model. `choice` selects one checkpoint, or the mean of
/// the last ones. Returns the step of the checkpoint. For a mean, returns the step of the last checkpoint. Throws
/// FileError if a chosen checkpoint is missing. Reads again if another process replaces checkpoints during the read.
std::int64_t load_checkpoint(Model& model, const std::string& directory, const CheckpointChoice& choice);

}  // namespace xtape::train
