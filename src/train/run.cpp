#include <chrono>
#include <thread>

#include "agreement.hpp"
#include "answers.hpp"
#include "attention_weights.hpp"
#include "checkpoint.hpp"
#include "durable.hpp"
#include "evaluate.hpp"
#include "hugging_face/adapter.hpp"
#include "json_text.hpp"
#include "loss.hpp"
#include "metrics.hpp"
#include "new_run.hpp"
#include "plan/memory.hpp"
#include "recipe_parts.hpp"
#include "run_agreement.hpp"
#include "run_model.hpp"
#include "translate.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/train.hpp"

namespace xtape {

namespace {
std::string without_slashes(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}
}  // namespace

struct Run::Data {
  explicit Data(const std::shared_ptr<Communicator>& communicator) : group(communicator) {}

  ranks::RankGroup group;  // the group of all processes that work on the run
  std::string directory;
  Recipe recipe;
  train::Tokenizers tokenizers;
  std::optional<train::Texts> texts;  // empty until needed
  std::unique_ptr<Batches> batches;   // null until needed
  std::optional<Model> model;
  std::optional<Trainer> trainer;
  std::optional<Searcher> searcher;
  std::optional<FileLock> lock;        // held while this process trains the run
  std::optional<std::int64_t> resume;  // the step to continue from; if empty, the step of the last checkpoint
  std::int64_t saved = -1;             // the step of the last checkpoint
  std::int64_t opened = 0;             // the step of the weights that the model received when the run was opened

  const Batches& the_batches() {
    if (!batches) batches = the_texts().batches(recipe, tokenizers);
    return *batches;
  }
  const train::Texts& the_texts() {
    if (!texts) texts.emplace(recipe);
    return *texts;
  }
  std::string checkpoints() const { return directory + "/" + train::checkpoints_folder; }
  train::FailureFolders failures() const { return {directory + "/capsule", directory + "/failed_play"}; }
  bool is_first() const { return group.rank() == 0; }
  void acquire() {
    if (lock || !is_first()) return;
    lock.emplace(directory + "/" + train::lock_file, directory);
    for (const std::string& name : names_in(directory))  // files that a crash left incomplete
      if (is_unfinished(name)) remove_if_possible(directory + "/" + name);
  }
  std::int64_t step() const { return trainer ? trainer->step() : opened; }

  Evaluation evaluated(const Batches& on) {
    train::Evaluator evaluator(*model);
    evaluator.folders = failures();
    return train::evaluate(evaluator, on, group);
  }

  /// Measures the model's answers as the recipe requests. The prompts come from a split, unless there are separate
  /// `pairs`.
  void measure(Evaluation& evaluation, bool on_test = false, const std::function<void()>& between = {},
               const std::optional<PairTexts>& other = std::nullopt) {
    if (!recipe.measure_bleu && !recipe.measure_exact_match) return;
    const PairTexts pairs = other ? *other : the_texts().answers(recipe, on_test);
    const bool limited = recipe.trainer.memory > 0;
    if (limited) return_memory();
    train::compare(recipe,
                   recipe.data.has_pairs()
                       ? translated(pairs.source, between)
                       : train::continued(recipe, *model, *tokenizers.target, pairs, the_columns(), group, between),
                   pairs.target, evaluation);
    if (limited) return_memory();
  }

  /// Releases the memory that only updates or only answers need, because the two take turns.
  void return_memory() {
    searcher.reset();
    model->player_options().arena->release();
    return_freed_memory();
  }

  std::vector<std::string> translated(const std::vector<std::string>& sources, const std::function<void()>& between) {
    SearchOptions greedy = recipe.search;
    greedy.between = between;
    greedy.beam_size = greedy.n_best = 1;
    std::vector<std::string> made;
    for (const Translation& each : translate(sources, greedy))
      made.push_back(each.candidates.empty() ? "" : each.candidates[0].text);
    return made;
  }

  std::int64_t the_columns() {
    if (!recipe.data.has_rows()) return recipe.data.block_size;
    return recipe.data.longest_row > 0 ? recipe.data.longest_row : the_batches().columns();
  }

  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options) {
    if (!recipe.data.has_pairs()) throw Error("this run's data is not sentence pairs: the run cannot translate");
    if (!searcher) searcher.emplace(*model);
    const Hyper& hyper = model->hyper();
    const std::int64_t positions = hyper.has("max_positions") ? hyper.integer("max_positions") : 0;
    return train::translate(*searcher, tokenizers, lines, options, positions, group);
  }

  /// Returns a trainer that has made no update.
  Trainer new_trainer() {
    if (group.size() > 1) train::check_agreement(group, the_texts());
    TrainerOptions options = recipe.trainer;
    options.capsule = failures().capsule;
    options.failed_play = failures().play;
    return Trainer(*model, the_batches(), options);
  }

  /// Returns a new trainer. It continues from a checkpoint if there is one.
  Trainer continued() {
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

  /// Creates the trainer of a new run. If the memory limit is too low on any rank, removes the run.
  void make_first_trainer() {
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

  /// Throws FileError if another process has continued the training of the run since this trainer was made.
  void check_last_checkpoint() const {
    if (!is_first()) return;
    const std::vector<std::string> found = train::checkpoints(checkpoints());
    if (!found.empty() && train::step_of_checkpoint(found.back()) > trainer->step())
      throw FileError(directory + " has been trained on meanwhile, to step " +
                      std::to_string(train::step_of_checkpoint(found.back())) + ": open it again");
  }

  /// Flushes the metrics up to the trainer's step. Then saves a checkpoint of this step, unless it exists. If the run
  /// has been moved or deleted in the meantime, the error says so, whichever call failed.
  void save(std::optional<train::Metrics>& metrics, const Trainer::Callbacks& callbacks) {
    if (lock) lock->check();
    if (trainer->step() == saved) return;
    try {
      if (metrics) metrics->flush();
      trainer->save(checkpoints() + "/" + train::checkpoint_name(trainer->step()));
      saved = trainer->step();
      if (is_first())
        train::remove_old_checkpoints(checkpoints(), recipe.keep, trainer->best_step(), callbacks.warning);
    } catch (const FileError&) {
      if (lock) lock->check();
      throw;
    }
  }
};

Run::Run(std::unique_ptr<Data> data) : data_(std::move(data)) {}

const std::string& Run::directory() const {
  return data_->directory;
}
const Recipe& Run::recipe() const {
  return data_->recipe;
}
Model& Run::model() {
  return *data_->model;
}
namespace {
const Tokenizer& existing(const std::shared_ptr<const Tokenizer>& tokenizer, const Recipe& recipe) {
  if (!tokenizer) throw Error("this run's data is " + recipe.data.kind + ": the run has no tokenizer");
  return *tokenizer;
}
}  // namespace
const Tokenizer& Run::tokenizer() const {
  return existing(data_->tokenizers.target, recipe());
}
const Tokenizer& Run::source_tokenizer() const {
  return existing(data_->tokenizers.source, recipe());
}
const Batches& Run::batches() {
  return data_->the_batches();
}

const std::vector<std::string>& Run::labels() const {
  return data_->tokenizers.labels;
}

std::int64_t Run::columns() {
  return data_->the_columns();
}

Tokens Run::prompt(const std::string& text) const {
  return train::prompt_tokens(recipe(), tokenizer(), text);
}

std::int32_t Run::end_token() const {
  return recipe().data.has_rows() ? tokenizer().end() : -1;
}

namespace {
/// Waits until a folder that rank 0 has created is visible on this rank. Network file systems can take a moment.
void wait_for(const std::string& directory, const ranks::RankGroup& group) {
  for (int tries = 0; tries < 100 && !path_exists(directory + "/recipe.json"); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!path_exists(directory + "/recipe.json"))
    throw FileError(group.name(group.rank()) + " does not see " + directory +
                    ", which rank 0 has made: the run must be in a folder that all hosts share");
}
}  // namespace

Run Run::create(const Recipe& recipe, const std::string& path, const std::shared_ptr<Communicator>& communicator) {
  const std::string directory = without_slashes(path);
  ranks::RankGroup group(communicator);
  train::check_agreement(group, recipe);
  ranks::check_shards(recipe.trainer.shards, group.size());
  if (group.size() > 1 && group.rank() > 0)
    for (const std::vector<std::string>& files : recipe.data.training)
      if (std::ranges::count(files, train::standard_input) > 0)
        throw Error("only a single process can read its data from a pipe");
  if (group.rank() == 0 && path_exists(directory)) throw FileError(directory + " already exists");
  train::Texts texts(recipe);
  train::check_agreement(group, texts);
  std::unique_ptr<Batches> batches;
  if (group.rank() == 0) {
    const train::Tokenizers tokenizers = texts.make_tokenizers(recipe);
    batches = texts.batches(recipe, tokenizers);
    train::write_run(recipe, tokenizers, *batches, texts.inputs(), directory);
  }
  group.barrier();
  wait_for(directory, group);
  // The run uses its own copy of the definition from the start. Random numbers depend on the file and line of a call,
  // so they would differ after a resume if another copy had been used before.
  Run run = open(directory, {}, {}, communicator);
  run.data_->texts = std::move(texts);  // kept, because a pipe can be read only once
  run.data_->batches = std::move(batches);
  if (recipe.trainer.memory > 0) run.data_->make_first_trainer();
  return run;
}

Run Run::open(const std::string& directory, const std::vector<Setting>& settings, const CheckpointChoice& checkpoint,
              const std::shared_ptr<Communicator>& communicator) {
  const std::string file = directory + "/recipe.json";
  if (!path_exists(file)) throw FileError(directory + " is not a run: it has no recipe.json");
  auto data = std::make_unique<Data>(communicator);
  data->directory = directory;
  data->recipe = Recipe::load(file, settings);
  data->recipe.trainer.communicator = communicator;
  train::check_agreement(data->group, data->recipe);
  if (data->group.size() > 1 && data->recipe.trainer.threads == 0)
    data->recipe.trainer.threads = ranks::threads_of(data->group);
  data->tokenizers = train::load_tokenizers(directory, data->recipe.data);
  const std::vector<std::string> found = train::checkpoints(data->checkpoints());
  data->model = train::run_model(data->recipe, directory, !found.empty());
  ranks::check_agreement(data->group, "definition", data->model->definition_text());
  if (!found.empty() || checkpoint.kind != CheckpointChoice::Kind::last)
    data->opened = train::load_checkpoint(*data->model, data->checkpoints(), checkpoint);
  return Run(std::move(data));
}

Run Run::resume(const std::string& directory, const std::vector<Setting>& settings, const CheckpointChoice& checkpoint,
                const std::shared_ptr<Communicator>& communicator) {
  if (checkpoint.kind == CheckpointChoice::Kind::average)
    throw Error("training cannot continue from an average of checkpoints: it has no optimiser state");
  Run run = open(directory, settings, checkpoint, communicator);
  if (checkpoint.kind != CheckpointChoice::Kind::last) run.data_->resume = run.data_->opened;
  run.data_->acquire();
  return run;
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
  const train::Texts texts(recipe);
  const train::Tokenizers tokenizers = texts.make_tokenizers(recipe);
  const std::unique_ptr<Batches> batches = texts.batches(recipe, tokenizers);
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

Evaluation Run::evaluate(bool on_test) {
  Data& d = *data_;
  if (d.group.size() > 1) train::check_agreement(d.group, d.the_texts());
  Evaluation evaluation =
      on_test ? d.evaluated(*d.the_texts().batches(d.recipe, d.tokenizers, true)) : d.evaluated(batches());
  evaluation.step = d.step();
  d.measure(evaluation, on_test);
  return evaluation;
}

Evaluation Run::evaluate(const std::vector<std::string>& source, const std::vector<std::string>& target) {
  Data& d = *data_;
  if (!d.recipe.data.has_pairs()) throw Error("this run's data is not sentence pairs");
  if (source.size() != target.size())
    throw Error(std::to_string(source.size()) + " sources and " + std::to_string(target.size()) + " targets");
  const PairTexts texts = {source, target};
  const DataRows pairs = pairs_of(texts, *d.tokenizers.source, *d.tokenizers.target);
  if (pairs.rows.empty())
    throw Error("there is nothing to evaluate on: none of the " + std::to_string(source.size()) +
                " pairs of lines has words on both sides");
  const RowBatches other(pairs, pairs, train::row_options(d.recipe));
  Evaluation evaluation = d.evaluated(other);
  evaluation.step = d.step();
  d.measure(evaluation, false, {}, texts);
  return evaluation;
}

std::vector<Translation> Run::translate(const std::vector<std::string>& lines, const SearchOptions& options) {
  return data_->translate(lines, options);
}

std::vector<Attention> Run::attention(const std::string& source, const std::optional<std::string>& target) {
  Data& d = *data_;
  train::check_attention(*d.model);
  if (!d.recipe.data.has_pairs()) {
    if (target) throw Error("this run's data is not sentence pairs: its attention has no target");
    return train::attention(*d.model, tokenizer(), source);
  }
  if (target) return train::attention(*d.model, d.tokenizers, source, train::produced(tokenizer(), *target));
  const Translation translation = translate({source}, d.recipe.search)[0];
  if (!translation.problem.empty()) throw Error("the source " + translation.problem);
  const auto& found = translation.candidates;
  return train::attention(*d.model, d.tokenizers, source, found.empty() ? Tokens() : found[0].tokens);
}

void Run::save_hugging_face(const std::string& folder, std::optional<Dtype> weights) const {
  const std::string words = train::hugging_face_folder(data_->directory);
  xtape::save_hugging_face(*data_->model, folder, is_hugging_face(words) ? words : "", weights);
}

bool Run::save_adapter(const std::string& folder, const std::string& base) const {
  const std::string& from = data_->recipe.from;
  if (from.empty())
    throw FileError("'" + data_->directory + "' did not start from a folder: it has no adapters of one");
  train::check_adapters_alone(*data_->model, data_->directory);
  const bool is_there = is_hugging_face(from);
  model::write_adapter(*data_->model, folder, base.empty() ? from : base, is_there ? from : "");
  return is_there;
}

}  // namespace xtape
