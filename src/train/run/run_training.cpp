// Trains runs, and makes the first updates of recipes without a run.
#include <string_view>

#include "base/bytes/encodings.hpp"
#include "base/system/instruction_set.hpp"
#include "ranks/rank_group.hpp"
#include "tape/tape_json.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"
#include "train/run/run_state.hpp"
#include "train/run/samples.hpp"

namespace xtape {

Trainer Run::Data::new_trainer() {
  if (group.size() > 1) train::check_agreement(group, the_splits());
  TrainerOptions options = recipe.trainer;
  if (!only_reads) {
    options.capsule = failures().capsule;
    options.failed_play = failures().play;
  }
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

std::string Run::Data::weights_digest() {
  std::vector<std::string_view> arrays;
  const auto add = [&](const Array& array) {
    arrays.emplace_back(static_cast<const char*>(array.data()), array.bytes());
  };
  for (const Store::Entry& weight : trainer->trained()) add(weight.value);
  if (!updated) updated = train::updated_weights(*model, recipe.trainer);
  for (const std::string& name : *updated) add(model->weights().at(name));
  return digest_of(arrays, recipe.trainer.threads);
}

train::LedgerSession Run::Data::session() {
  train::LedgerSession session;
  session.version = XTAPE_VERSION;
  session.instruction_set = name_of(instruction_set());
  session.data = hexadecimal(the_splits().checksum());
  const auto add = [&](const Recipe::Data::Files& files) {
    for (const std::vector<std::string>& part : files)
      for (const std::string& file : part)
        session.data_files.emplace_back(file, is_plain_file(file) ? digest_of_file(file) : "");
  };
  for (const Recipe::Data::Files* split : {&recipe.data.training, &recipe.data.validation, &recipe.data.test})
    add(*split);
  for (const auto& [name, files] : recipe.data.sets) add(files);
  return session;
}

train::LedgerCheckpoint Run::Data::entry_of(const std::string& folder) {
  return {trainer->step(), weights_digest(), train::digests_in(folder)};
}

void Run::Data::save(std::optional<Lines>& lines, const Trainer::Callbacks& callbacks) {
  if (lock) lock->check();
  if (trainer->step() == saved) return;
  try {
    if (lines) lines->metrics.flush();
    if (lines && lines->samples) lines->samples->flush();
    trainer->save(checkpoints() + "/" + train::checkpoint_name(trainer->step()),
                  [&](const std::string& folder) { lines->ledger.add(entry_of(folder)); });
    saved = trainer->step();
    if (is_first()) train::remove_old_checkpoints(checkpoints(), recipe.keep, trainer->best_step(), callbacks.warning);
  } catch (const FileError&) {
    if (lock) lock->check();
    throw;
  }
}

void Run::Data::open(std::optional<Lines>& lines) {
  const std::int64_t step = trainer->step();
  train::LedgerSession begun = session();
  begun.step = step;
  begun.weights = weights_digest();
  begun.files = train::digests_in(directory);
  lines.emplace(directory, *trainer, begun);
  if (const Recipe::Samples& samples = recipe.samples; !samples.prompts.empty() || !samples.function.empty()) {
    // Samples of an evaluation that is repeated are made again.
    const bool again = samples.every == 0 && trainer->evaluated_step() < step;
    lines->samples.emplace(train::cut_after(path_in(directory, train::samples_file), again ? step - 1 : step));
  }
  // A run of an earlier version, which kept no ledger, or a crash in its middle.
  const std::string checkpoint = checkpoints() + "/" + train::checkpoint_name(step);
  if (!lines->ledger.has_checkpoint(step) && path_exists(checkpoint)) lines->ledger.add(entry_of(checkpoint));
}

Trainer& Run::trainer() {
  Data& d = *data_;
  if (d.trainer) return *d.trainer;
  d.acquire();
  return d.trainer.emplace(d.continued());
}

bool Run::train(const Trainer::Callbacks& callbacks) {
  Data& d = *data_;
  if (d.trainer && d.trainer->is_training())
    throw Error("this run is being trained: a callback of its training cannot train it, too");
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
  std::optional<Run::Data::Lines> lines;
  if (d.is_first()) d.open(lines);
  Trainer::Callbacks own = callbacks;
  own.step = [&](const StepReport& report) {
    if (lines) {
      lines->metrics.add(report);
      const bool digest = report.step % train::digest_every == 0;
      lines->ledger.add(report.step, train::LedgerUpdate::of(report), digest ? d.weights_digest() : "");
    }
    if (callbacks.step) callbacks.step(report);
  };
  own.statistics = [&](std::int64_t step, const std::vector<ModuleStatistics>& statistics) {
    if (lines) lines->metrics.add(step, statistics);
    if (callbacks.statistics) callbacks.statistics(step, statistics);
  };
  own.watched = [&](std::int64_t step, const std::vector<WatchedValue>& values) {
    if (lines) lines->metrics.add(step, values);
    if (callbacks.watched) callbacks.watched(step, values);
  };
  const auto sample = [&](std::int64_t step) {
    if (d.recipe.samples.prompts.empty() && d.recipe.samples.function.empty()) return;
    const bool limited = d.recipe.trainer.memory > 0;
    if (limited) d.return_memory();
    std::vector<std::string> made;
    std::string wrong;
    try {
      made = train::samples_of(*this, step);
    } catch (const CommunicationError&) {
      throw;
    } catch (const Error& error) {
      wrong = error.what();
    }
    if (d.group.any(!wrong.empty()))  // so that all ranks end the training
      throw EvaluationError("the samples after update " + std::to_string(step) + ": " +
                            (wrong.empty() ? "an error on another rank" : wrong));
    for (const std::string& line : made)
      if (lines) lines->samples->write(line + "\n");
    if (limited) d.return_memory();
    if (callbacks.sample) callbacks.sample(step);
  };
  own.sample = sample;
  Trainer::FitOptions fit = d.recipe.fit;
  fit.sample_every = d.recipe.samples.every;
  std::int64_t epoch = the_trainer.epoch();
  own.evaluation = [&](Evaluation& evaluation) {
    bool interrupted = false;
    const auto between = [&] {
      interrupted = interrupted || (callbacks.interrupt && callbacks.interrupt());
      if (interrupted && d.group.size() == 1) throw train::Interruption();
    };
    d.measure(evaluation, "", between);
    d.add_sets(
        evaluation, [&](const Batches& on, const std::string& set) { return the_trainer.evaluate(on, set); }, between);
    if (d.group.any(interrupted)) throw train::Interruption();
    if (lines) lines->metrics.add(evaluation);
    if (fit.sample_every == 0) sample(evaluation.step);
    d.saved = -1;  // the result belongs to the checkpoint of this step, so an existing checkpoint is written again
    if (callbacks.evaluation) callbacks.evaluation(evaluation);
  };
  own.stop = [&] {
    const std::int64_t every = d.recipe.checkpoint_every;
    const bool epoch_over = the_trainer.epoch() > epoch;
    epoch = the_trainer.epoch();
    const bool due = (every > 0 && the_trainer.step() % every == 0) || (epoch_over && d.recipe.checkpoint_epochs);
    const bool asked = d.group.any(callbacks.save && callbacks.save());
    if (due || asked) d.save(lines, callbacks);
    return callbacks.stop && callbacks.stop();
  };
  bool finished = false;
  try {
    // If an update fails, nothing is written, so the last good checkpoint stays the last one.
    finished = the_trainer.fit(fit, own);
  } catch (const EvaluationError& error) {  // the updates before the evaluation are valid
    try {
      d.save(lines, callbacks);
    } catch (const Error& also) {
      throw EvaluationError(error.what() + std::string("\n") + also.what());
    }
    throw;
  }
  d.save(lines, callbacks);
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
