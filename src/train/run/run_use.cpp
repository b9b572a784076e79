// Uses the models of runs: evaluations, answers, translations and exports.
#include "model/hugging_face/adapter.hpp"
#include "player/plan/memory.hpp"
#include "train/predict/predict.hpp"
#include "train/run/run_parts.hpp"
#include "train/run/run_state.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape {

Evaluation Run::Data::evaluated(const Batches& on) {
  train::Evaluator evaluator(*model);
  evaluator.folders = failures();
  return train::evaluate(evaluator, on, group);
}

void Run::Data::measure(Evaluation& evaluation, bool on_test, const std::function<void()>& between,
                        const std::optional<PairTexts>& other) {
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
  if (!recipe.data.has_pairs()) throw Error("this run's data is not sentence pairs: the run cannot translate");
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
