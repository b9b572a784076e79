/// What a run holds, shared by the files that define it: run.cpp opens and uses runs, run_training.cpp trains
/// them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/durable.hpp"
#include "ranks/rank_group.hpp"
#include "train/data/data_kind.hpp"
#include "train/run/ledger.hpp"
#include "train/run/metrics.hpp"
#include "train/run/run_parts.hpp"
#include "train/trainer/evaluator.hpp"
#include "xtape/train.hpp"

namespace xtape {

struct Run::Data {
  explicit Data(const std::shared_ptr<Communicator>& communicator) : group(communicator) {}

  ranks::RankGroup group;  // the group of all processes that work on the run
  std::string directory;
  Recipe recipe;
  std::string own_recipe;  // the text of `recipe` without the settings of this process
  train::Tokenizers tokenizers;
  std::shared_ptr<train::DataSplits>
      splits;                        // null until needed; must stay where it is, because batches may refer to it
  std::unique_ptr<Batches> batches;  // null until needed
  std::optional<std::vector<std::unique_ptr<Batches>>> sets;  // of further validation sets; empty until needed
  std::optional<Model> model;
  std::optional<Trainer> trainer;
  std::optional<Searcher> searcher;
  std::optional<FileLock> lock;        // held while this process trains the run
  std::optional<std::int64_t> resume;  // the step to continue from; if empty, the step of the last checkpoint
  std::optional<std::vector<std::string>> updated;  // the weights that the definition updates; empty until needed
  std::int64_t saved = -1;                          // the step of the last checkpoint
  std::int64_t opened = 0;  // the step of the weights that the model received when the run was opened
  bool only_reads = false;  // whether this process writes nothing to the run, not even failures

  const Batches& the_batches() {
    if (!batches) batches = the_splits().batches(recipe, tokenizers);
    return *batches;
  }
  const train::DataSplits& the_splits() {
    const std::string cache = train::cache_of(directory);
    if (!splits) splits = std::make_shared<train::DataSplits>(recipe, only_reads && !path_exists(cache) ? "" : cache);
    return *splits;
  }
  std::string checkpoints() const { return directory + "/" + train::checkpoints_folder; }
  train::FailureFolders failures() const { return {directory + "/capsule", directory + "/failed_play"}; }
  bool is_first() const { return group.rank() == 0; }
  std::int64_t step() const { return trainer ? trainer->step() : opened; }
  void acquire();
  std::int64_t the_columns();

  // Training
  /// Returns a trainer that has made no update.
  Trainer new_trainer();
  /// Returns a new trainer. It continues from a checkpoint if there is one.
  Trainer continued();
  /// Creates the trainer of a new run. If the memory limit is too low on any rank, removes the run.
  void make_first_trainer();
  /// Throws FileError if another process has continued the training of the run since this trainer was made.
  void check_last_checkpoint() const;
  /// The lines that rank 0 appends while it trains.
  struct Lines {
    Lines(const std::string& directory, const Trainer& trainer, const train::LedgerSession& session)
        : metrics(path_in(directory, train::metrics_file), trainer.step(), trainer.evaluated_step()),
          ledger(directory, session) {}
    train::Metrics metrics;
    train::Ledger ledger;
    std::optional<AppendedFile> samples;  // only if the recipe asks for samples
  };
  /// Opens the lines for a training from the trainer's step.
  void open(std::optional<Lines>& lines);
  /// Flushes the lines up to the trainer's step. Then saves a checkpoint of this step, unless it exists. If the run has
  /// been moved or deleted in the meantime, the error says so, whichever call failed.
  void save(std::optional<Lines>& lines, const Trainer::Callbacks& callbacks);
  /// Returns the digest of the weights that the training changes.
  std::string weights_digest();
  /// Returns what the ledger says about this process and the data.
  train::LedgerSession session();
  /// Returns the ledger's entry about the checkpoint of the trainer's step, whose files are in `folder`.
  train::LedgerCheckpoint entry_of(const std::string& folder);

  struct Verifier;  // in verify.cpp

  // Using the model
  Evaluation evaluated(const Batches& on);
  /// Measures the model's answers as the recipe requests, to prompts of a split: "" is the validation split; the others
  /// are those of DataSplits::batches.
  void measure(Evaluation& evaluation, const std::string& on = "", const std::function<void()>& between = {});
  void measure(Evaluation& evaluation, const PairTexts& pairs, const std::function<void()>& between);
  /// Adds the results of the further validation sets. `evaluate` evaluates one of them.
  void add_sets(Evaluation& evaluation,
                const std::function<Evaluation(const Batches&, const std::string& set)>& evaluate,
                const std::function<void()>& between = {});
  std::vector<std::string> translated(const std::vector<std::string>& sources, const std::function<void()>& between);
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options);
  /// Releases the memory that only updates or only answers need, because the two take turns.
  void return_memory();
};

}  // namespace xtape
