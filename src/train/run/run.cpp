// Creates, opens and resumes runs.
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/system/files.hpp"
#include "base/system/folder_file.hpp"
#include "data/tokenizers/utf8.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "player/plan/memory.hpp"
#include "ranks/rank_group.hpp"
#include "train/predict/predict.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"
#include "train/run/run_state.hpp"
#include "train/trainer/turns.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape {

namespace {
std::string without_slashes(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}
}  // namespace

void Run::Data::acquire() {
  if (lock || !is_first()) return;
  lock.emplace(directory + "/" + train::lock_file, directory);
  for (const std::string& folder : {directory, train::cache_of(directory)})
    if (is_folder(folder))
      for (const std::string& name : names_in(folder))  // files that a crash left incomplete
        if (is_unfinished(name)) remove_if_possible(path_in(folder, name));
}

std::int64_t Run::Data::the_columns() {
  if (!recipe.data.has_rows()) return recipe.data.block_size;
  return recipe.data.longest_row > 0 ? recipe.data.longest_row : the_batches().columns();
}

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
  if (!tokenizer)
    throw Error("this run has no tokenizer: its data is " + recipe.data.kind + ", and its recipe names none");
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
  if (const auto& chats = data_->tokenizers.chats) return chats->prompt(tokenizer(), {{"user", text}});
  return train::prompt_tokens(recipe(), tokenizer(), text);
}

std::int32_t Run::end_token() const {
  return recipe().data.has_rows() ? tokenizer().end() : -1;
}

Tokens Run::end_tokens() const {
  if (!recipe().data.has_rows()) return {};
  Tokens ends = train::end_tokens(tokenizer());
  const auto& chats = data_->tokenizers.chats;
  const std::int32_t end = chats ? chats->end_of_answer(tokenizer()) : -1;
  if (end >= 0 && !contains(ends, end)) ends.push_back(end);
  return ends;
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

namespace {
/// The folder of a run's cache while the run is made. It is removed unless it has been moved.
class CacheBeside {
 public:
  CacheBeside(const std::string& directory, bool is_made) : folder_(is_made ? directory + ".cache" + unfinished : "") {
    if (is_made) remove_if_possible(folder_);  // of a process that was killed
  }
  CacheBeside(const CacheBeside&) = delete;
  CacheBeside& operator=(const CacheBeside&) = delete;
  ~CacheBeside() {
    if (!folder_.empty()) remove_if_possible(folder_);
  }
  const std::string& folder() const { return folder_; }
  void move(const std::string& to) const {
    if (path_exists(folder_)) rename_path(folder_, to);
  }

 private:
  std::string folder_;
};
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
  std::error_code ignored;
  if (!error_not_utf8("", std::filesystem::absolute(directory, ignored).string()).empty())
    throw FileError("the path of a run must be UTF-8, because its files have it: " + escaped(directory));
  if (!recipe.from.empty()) model::read_config(recipe.from);  // throws before long texts are read
  // Made before the run's folder, which then gets it.
  const CacheBeside cache(directory, group.rank() == 0);
  const auto splits = std::make_shared<train::DataSplits>(recipe, cache.folder());
  train::check_agreement(group, *splits);
  std::unique_ptr<Batches> batches;
  std::optional<std::vector<std::unique_ptr<Batches>>> sets;
  if (group.rank() == 0) {
    const train::Tokenizers tokenizers = splits->make_tokenizers(recipe);
    batches = splits->batches(recipe, tokenizers);
    sets = splits->sets(recipe, tokenizers);
    train::write_run(recipe, tokenizers, *batches, splits->inputs(), directory);
    cache.move(train::cache_of(directory));
    forget_folder_file();  // the run has its own copy of the weights
  }
  group.barrier();
  wait_for(directory, group);
  // The run uses its own copy of the definition from the start. Random numbers depend on the file and line of a call,
  // so they would differ after a resume if another copy had been used before.
  Run run = open(directory, {}, {}, communicator);
  splits->use_cache(train::cache_of(directory));
  run.data_->splits = splits;  // kept, because a pipe can be read only once
  run.data_->batches = std::move(batches);
  run.data_->sets = std::move(sets);
  if (recipe.trainer.memory > 0) run.data_->make_first_trainer();
  return run;
}

Run Run::open(const std::string& directory, const std::vector<Setting>& settings, const CheckpointChoice& checkpoint,
              const std::shared_ptr<Communicator>& communicator) {
  const std::string file = directory + "/recipe.json";
  if (!path_exists(file))
    throw FileError(directory + " is not a run: " +
                    (path_exists(directory) ? "it has no recipe.json" : "there is no folder or file of this name"));
  auto data = std::make_unique<Data>(communicator);
  data->directory = directory;
  const std::string recipe = read_file(file);  // once, because a training that begins may replace it
  data->own_recipe = train::recipe_text(recipe, file);
  // Before the recipe is read: other keys may be wrong with a value that cannot change.
  train::check_changes(directory, data->own_recipe, train::recipe_text(recipe, file, settings), settings);
  data->recipe = train::recipe_of_text(recipe, file, settings);
  data->recipe.trainer.communicator = communicator;
  train::check_agreement(data->group, data->recipe);
  data->recipe.trainer.threads = ranks::threads_of(data->group, data->recipe.trainer.threads);
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

// Uses the models of runs: evaluations, answers, translations and exports.

Evaluation Run::Data::evaluated(const Batches& on) {
  const std::vector<std::string> losses =
      recipe.trainer.updates.empty() ? std::vector<std::string>() : train::Turns(recipe.trainer).functions();
  train::Evaluator evaluator(*model, losses, model->player_options());
  evaluator.folders = failures();
  return train::evaluate(evaluator, on, group);
}

void Run::Data::measure(Evaluation& evaluation, const std::string& on, const std::function<void()>& between) {
  if (recipe.measure_bleu || recipe.measure_exact_match) measure(evaluation, the_splits().answers(recipe, on), between);
}

void Run::Data::measure(Evaluation& evaluation, const PairTexts& pairs, const std::function<void()>& between) {
  if (!recipe.measure_bleu && !recipe.measure_exact_match) return;
  const bool limited = recipe.trainer.memory > 0;
  if (limited) return_memory();
  train::compare(recipe,
                 recipe.data.has_pairs()
                     ? translated(pairs.source, between)
                     : train::continued(recipe, *model, *tokenizers.target, pairs, the_columns(), group, between),
                 pairs.target, evaluation);
  if (limited) return_memory();
}

void Run::Data::add_sets(Evaluation& evaluation,
                         const std::function<Evaluation(const Batches&, const std::string& set)>& evaluate,
                         const std::function<void()>& between) {
  if (!sets) sets = the_splits().sets(recipe, tokenizers);
  for (std::size_t i = 0; i < sets->size(); ++i) {
    const std::string& name = recipe.data.sets[i].first;
    evaluation.sets.push_back(evaluate(*sets->at(i), name));
    measure(evaluation.sets.back(), name, between);
  }
}

std::vector<std::string> Run::Data::translated(const std::vector<std::string>& sources,
                                               const std::function<void()>& between) {
  SearchOptions greedy = recipe.search;
  greedy.between = between;
  greedy.beam_size = greedy.n_best = 1;
  std::vector<std::string> made;
  for (const Translation& each : translate(sources, greedy))
    made.push_back(each.candidates.empty() ? "" : each.candidates[0].text);
  return made;
}

std::vector<Translation> Run::Data::translate(const std::vector<std::string>& lines, const SearchOptions& options) {
  train::check_translates(*model, existing(tokenizers.target, recipe));
  if (!searcher) searcher.emplace(*model);
  const Hyper& hyper = model->hyper();
  const std::int64_t positions = hyper.has("max_positions") ? hyper.integer("max_positions") : 0;
  SearchOptions ended = options;
  ended.ends = train::end_tokens(*tokenizers.target);
  return train::translate(*searcher, tokenizers, lines, ended, positions, group);
}

void Run::Data::return_memory() {
  searcher.reset();
  model->player_options().arena->release();
  return_freed_memory();
}

Evaluation Run::evaluate(bool on_test) {
  Data& d = *data_;
  if (d.group.size() > 1) train::check_agreement(d.group, d.the_splits());
  const std::string on = on_test ? train::test_split : "";
  Evaluation evaluation =
      on_test ? d.evaluated(*d.the_splits().batches(d.recipe, d.tokenizers, on)) : d.evaluated(batches());
  evaluation.step = d.step();
  d.measure(evaluation, on);
  if (on_test) return evaluation;
  d.add_sets(evaluation, [&](const Batches& batches, const std::string& set) {
    Evaluation on_set = d.evaluated(batches);
    on_set.set = set;
    return on_set;
  });
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
  d.measure(evaluation, texts, {});
  return evaluation;
}

std::vector<Translation> Run::translate(const std::vector<std::string>& lines, const SearchOptions& options) {
  return data_->translate(lines, options);
}

std::vector<Attention> Run::attention(const std::string& source, const std::optional<std::string>& target) {
  Data& d = *data_;
  train::check_attention(*d.model);
  if (!train::reads(*d.model, "attention", "source")) {
    if (target) throw Error("the function 'attention' of this run's model has no input 'source': it has no target");
    return train::attention(*d.model, tokenizer(), source);
  }
  if (target) return train::attention(*d.model, d.tokenizers, source, train::produced(tokenizer(), *target));
  const Translation translation = translate({source}, d.recipe.search)[0];
  if (!translation.problem.empty()) throw Error("the source " + translation.problem);
  const auto& found = translation.candidates;
  return train::attention(*d.model, d.tokenizers, source, found.empty() ? Tokens() : found[0].tokens);
}

}  // namespace xtape
