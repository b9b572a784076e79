// Trains runs, and makes the first updates of recipes without a run.
#include "ranks/rank_group.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"
#include "train/run/run_state.hpp"

namespace xtape {

Trainer Run::Data::new_trainer() {
  if (group.size() > 1) train::check_agreement(group, the_splits());
  TrainerOptions options = recipe.trainer;
  options.capsule = failures().capsule;
  options.failed_play = failures().play;
  return Trainer(*model, the_batches(), options);
}

Trainer Run::Data::continued() {
  Trainer made = new_trainer();
  const std::vector<std::string> found = train::checkpoints(checkpoints());
  if (resume) {
    made.load(checkpoints() + "/" + train::checkpoint_name(*resume));
    group.barrier();  // all ranks have listed the checkpoints
    if (is_first()) train::set_aside_after(checkpoints(), *resume);
    resume.reset();
  } else if (!found.empty()) {
    train::load_last(found, [&](const std::string& path) { made.load(path); });
  }
  if (!found.empty()) saved = made.step();
  ranks::check_agreement(group, "checkpoint", "that of step " + std::to_string(made.step()));
  return made;
}

void Run::Data::make_first_trainer() {
  std::optional<MemoryError> refused;
  acquire();
  try {
    trainer.emplace(new_trainer());
  } catch (const MemoryError& error) {
    refused = error;
  }
  if (!group.any(refused.has_value())) return;
  lock.reset();
  if (is_first()) remove_if_possible(directory);
  group.barrier();
  if (refused) throw MemoryError(*refused);
  throw Error("'memory' is too low on another rank");
}

void Run::Data::check_last_checkpoint() const {
  if (!is_first()) return;
  const std::vector<std::string> found = train::checkpoints(checkpoints());
  if (!found.empty() && train::step_of_checkpoint(found.back()) > trainer->step())
    throw FileError(directory + " has been trained on meanwhile, to step " +
                    std::to_string(train::step_of_checkpoint(found.back())) + ": open it again");
}

void Run::Data::save(std::optional<train::Metrics>& metrics, const Trainer::Callbacks& callbacks) {
  if (lock) lock->check();
  if (trainer->step() == saved) return;
  try {
    if (metrics) metrics->flush();
    trainer->save(checkpoints() + "/" + train::checkpoint_name(trainer->step()));
    saved = trainer->step();
    if (is_first()) train::remove_old_checkpoints(checkpoints(), recipe.keep, trainer->best_step(), callbacks.warning);
  } catch (const FileError&) {
    if (lock) lock->check();
    throw;
  }
}

Trainer& Run::trainer() {
  Data& d = *data_;
  if (d.trainer) return *d.trainer;
  d.acquire();
  return d.trainer.emplace(d.continued());
}

bool Run::train(const Trainer::Callbacks& callbacks) {
  Data& d = *data_;
  struct Released {
    ~Released() { lock.reset(); }
    std::optional<FileLock>& lock;
  } const released{d.lock};  // releases the lock, also after an exception
  Trainer& the_trainer = trainer();
  d.acquire();
  d.check_last_checkpoint();
  // Written before the first update with the settings, so that no checkpoint has other settings than the recipe says.
  if (d.is_first())
    d.own_recipe = d.recipe.text = train::write_changes(d.directory, d.own_recipe, d.recipe.text, the_trainer.step());
  std::optional<train::Metrics> metrics;
  if (d.is_first()) metrics.emplace(d.directory + "/metrics.jsonl", the_trainer.step(), the_trainer.evaluated_step());
  Trainer::Callbacks own = callbacks;
  own.step = [&](const StepReport& report) {
    if (metrics) metrics->add(report);
    if (callbacks.step) callbacks.step(report);
  };
  own.statistics = [&](std::int64_t step, const std::vector<ModuleStatistics>& statistics) {
    if (metrics) metrics->add(step, statistics);
    if (callbacks.statistics) callbacks.statistics(step, statistics);
  };
  std::int64_t epoch = the_trainer.epoch();
  own.evaluation = [&](const Evaluation& found) {
    Evaluation evaluation = found;
    bool interrupted = false;
    d.measure(evaluation, false, [&] {
      interrupted = interrupted || (callbacks.interrupt && callbacks.interrupt());
      if (interrupted && d.group.size() == 1) throw train::Interruption();
    });
    if (d.group.any(interrupted)) throw train::Interruption();
    if (metrics) metrics->add(evaluation);
    d.saved = -1;  // the result belongs to the checkpoint of this step, so an existing checkpoint is written again
    if (callbacks.evaluation) callbacks.evaluation(evaluation);
  };
  own.stop = [&] {
    const std::int64_t every = d.recipe.checkpoint_every;
    const bool epoch_over = the_trainer.epoch() > epoch;
    epoch = the_trainer.epoch();
    const bool due = (every > 0 && the_trainer.step() % every == 0) || (epoch_over && d.recipe.checkpoint_epochs);
    const bool asked = d.group.any(callbacks.save && callbacks.save());
    if (due || asked) d.save(metrics, callbacks);
    return callbacks.stop && callbacks.stop();
  };
  bool finished = false;
  try {
    // If an update fails, nothing is written, so the last good checkpoint stays the last one.
    finished = the_trainer.fit(d.recipe.fit, own);
  } catch (const EvaluationError& error) {  // the updates before the evaluation are valid
    try {
      d.save(metrics, callbacks);
    } catch (const Error& also) {
      throw EvaluationError(error.what() + std::string("\n") + also.what());
    }
    throw;
  }
  d.save(metrics, callbacks);
  return finished;
}

namespace {
/// Returns the result of `use` for a trainer of a new model of the recipe.
template <class Use>
auto with_trainer(const Recipe& recipe, const TrainerOptions& options, const Use& use) {
  const train::DataSplits splits(recipe);
  const train::Tokenizers tokenizers = splits.make_tokenizers(recipe);
  const std::unique_ptr<Batches> batches = splits.batches(recipe, tokenizers);
  Model model = train::new_model(recipe, tokenizers, *batches, true);
  return use(Trainer(model, *batches, options));
}
}  // namespace

TrainingProfile profile(const Recipe& recipe, std::int64_t updates, const std::shared_ptr<Trace>& trace) {
  TrainerOptions options = recipe.trainer;
  options.profile = true;
  options.trace = trace;
  return with_trainer(recipe, options, [&](Trainer trainer) { return trainer.profile(updates); });
}

RecordedPlay first_play(const Recipe& recipe) {
  return with_trainer(recipe, recipe.trainer, [](Trainer trainer) { return trainer.next_play(); });
}

}  // namespace xtape
