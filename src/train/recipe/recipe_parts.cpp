#include "train/recipe/recipe_parts.hpp"

#include <cmath>
#include <map>

#include "base/messages/wording.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "model/language/formula.hpp"
#include "player/plan/memory.hpp"
#include "ranks/shard_tree.hpp"
#include "xtape/array.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double least = std::numeric_limits<double>::denorm_min();
/// Half of the smallest positive float32. A larger number does not become 0 in float32.
constexpr double least_epsilon = std::numeric_limits<float>::denorm_min() / 2.0;

constexpr const char* of_moments = "the run's checkpoints hold the moments of this kind";
constexpr const char* of_noise = "epsilon holds only if all updates have the same noise";
constexpr const char* of_order = "the run's weights and its position in the data belong to it";

using MethodKind = OptimizerOptions::Kind;

/// Reads the method. Another one than before starts from its own defaults.
void read_method(Section& section, const std::string& name, OptimizerOptions& options) {
  MethodKind kind = options.kind;
  section.read(name, kind, {"sgd", "adam", "adamw", "lion", "rmsprop", "adafactor", "muon"});
  if (kind == options.kind) return;
  options = kind == MethodKind::muon ? Muon() : kind == MethodKind::lion ? Lion() : OptimizerOptions();
  options.kind = kind;
}

void read_betas(Section& section, const std::string& name, OptimizerOptions& options) {
  const Json& betas = section.value(name);
  if (betas.is_null()) return;
  if (!betas.is_array() || betas.size() != 2 || !betas[0].is_number() || !betas[1].is_number())
    section.fail(name, "must be a list of two numbers, not " + betas.dump());
  options.beta1 = betas[0];
  options.beta2 = betas[1];
  const auto right = [](double beta) { return beta >= 0 && beta < 1; };
  if (!right(options.beta1) || !right(options.beta2)) section.fail(name, "must be two numbers in [0, 1)");
}

void read_rate(Section& section, const std::string& name, OptimizerGroup& group) {
  if (section.has(name)) section.read(name, group.options.rate.emplace(), at_least_0);
}

/// Returns a condition for the keys of some methods.
auto is_one_of(const std::vector<MethodKind>& kinds) {
  return [kinds](const OptimizerOptions& options) { return std::ranges::count(kinds, options.kind) > 0; };
}

void read_vocab(Section& section, const std::string& name, TokenizerSettings& settings) {
  if (!section.has(name) || !section.has("merges"))
    section.fail("", "needs the keys 'vocab' and 'merges', the files vocab.json and merges.txt of GPT-2");
  section.read(name, settings.vocab);
}

// For such data, the length of rows is not known until the data is read.
bool has_rows_of_tokens(const Recipe& recipe) {
  return recipe.data.has_rows() && recipe.data.has_tokens();
}

void read_size(Section& section, const std::string& name, Recipe& recipe) {
  if (!has_rows_of_tokens(recipe)) section.need({name});
  // the minimum number of tokens in a row: a row of text has block_size
  const std::int64_t tokens = recipe.data.has_rows() ? 1 : recipe.data.block_size;
  section.read(name, recipe.batch_size, {section.has("tokens") ? 0 : 1, most_batch_tokens / tokens});
}
}  // namespace

const Keys<OptimizerOptions> optimizer_keys = {
    {{{"kind", R"(`"sgd"`, `"adam"`, `"adamw"`, `"lion"`, `"rmsprop"`, `"adafactor"`, `"muon"`)", "required",
       "the method", read_method, keeps(of_moments)}}},
    {{{"momentum", &OptimizerOptions::momentum, "the fraction of the last step that the next one keeps",
       Bounds{0, 1, "in [0, 1)"}, otherwise("`0`; `muon` `0.95`")}},
     "sgd, rmsprop and muon",
     is_one_of({MethodKind::sgd, MethodKind::rmsprop, MethodKind::muon})},
    {{{"nesterov", &OptimizerOptions::nesterov, "whether steps look ahead by the momentum",
       otherwise("`false`; `muon` `true`")}},
     "sgd and muon",
     is_one_of({MethodKind::sgd, MethodKind::muon})},
    {{{"betas", "two numbers in [0, 1)", "`[0.9, 0.999]`; `lion` `[0.9, 0.99]`", "the decay rates of both moments",
       read_betas}},
     "adam, adamw, lion and muon",
     is_one_of({MethodKind::adam, MethodKind::adamw, MethodKind::lion, MethodKind::muon})},
    {{{"epsilon", &OptimizerOptions::epsilon, "added to the square root of the second moment",
       Bounds{least_epsilon, infinity, "above 0, in float32 too"}}},
     "adam, adamw, rmsprop and muon",
     is_one_of({MethodKind::adam, MethodKind::adamw, MethodKind::rmsprop, MethodKind::muon})},
    {{{"eight_bits", &OptimizerOptions::eight_bits,
       "whether moments of weights of 4,096 elements or more have eight bits", keeps(of_moments)}},
     "adam and adamw",
     is_one_of({MethodKind::adam, MethodKind::adamw})},
    {{{"alpha", &OptimizerOptions::alpha, "the decay rate of the mean square", Bounds{0, 1, "in [0, 1)"}},
      {"centered", &OptimizerOptions::centered, "whether steps are divided by the standard deviation of gradients",
       keeps(of_moments)}},
     "rmsprop",
     is_one_of({MethodKind::rmsprop})},
    {{{"beta2_decay", &OptimizerOptions::beta2_decay, "update t forgets the share t^`beta2_decay` of the mean squares",
       Bounds{-infinity, least, "at most 0"}},
      {"least_scale", &OptimizerOptions::least_scale,
       "the rate is a factor of a weight's root mean square, at least of this", at_least_0},
      {"most_change", &OptimizerOptions::most_change,
       "limits the root mean square of a weight's change, before the rate", Bounds{least, infinity, "above 0"}}},
     "adafactor",
     is_one_of({MethodKind::adafactor})},
    {{{"iterations", &OptimizerOptions::iterations, "Newton-Schulz iterations", Range{1, 99}},
      {"match_adamw", &OptimizerOptions::match_adamw,
       "whether changes have the root mean square of those of adamw, whose rates and decays then fit"}},
     "muon",
     is_one_of({MethodKind::muon})},
    {{{"weight_decay", &OptimizerOptions::weight_decay, "the weight decay: `\"weight_decay\": 0.1`", at_least_0},
      {"decay_all", &OptimizerOptions::decay_all, "whether arrays of rank 0 and 1 decay, too"}}}};

const Keys<OptimizerGroup> group_keys = {
    {{{"weights", &OptimizerGroup::weights, "a pattern of the names of weights", needed},
      {"rate", "number, at least 0", "`1`", "a scale of the schedule's rate", read_rate},
      {"frozen", part(&OptimizerGroup::options, &OptimizerOptions::frozen), "the weights of the group do not change"},
      {"frozen_until", &OptimizerGroup::frozen_until, "the updates before which the weights of the group do not change",
       Range()}}}};

void read_optimizer(Section section, Recipe& recipe) {
  TrainerOptions& trainer = recipe.trainer;
  section.need({"kind"});
  read_keys(section, optimizer_keys, trainer.optimizer);
  for (Section& each : section.sections("groups")) {
    OptimizerGroup group{"", trainer.optimizer};
    read_keys(each, group_keys, group);
    if (group.weights.empty()) each.fail("weights", "must be a pattern of names of weights, such as \"*.bias\"");
    for (const auto& [key, value] : each.json().items())
      if (group.options.frozen && key != "weights" && key != "frozen")
        each.fail(key, "has no effect on weights that are 'frozen'");
    const std::optional<double> rate = group.options.rate;
    read_keys(each, optimizer_keys, group.options);
    each.done();
    group.options.rate = rate;
    trainer.groups.push_back(std::move(group));
  }
  section.done();
}

namespace {
auto has_kind(const char* kind) {
  return [kind](const TokenizerSettings& settings) { return settings.kind == kind; };
}
bool& lower_case(TokenizerSettings& settings) {
  return settings.kind == "words" ? settings.words.lower_case : settings.pieces.lower_case;
}
}  // namespace

const Keys<TokenizerSettings> tokenizer_keys = {
    {{{"kind", &TokenizerSettings::kind, "the kind of the tokenizer",
       Names{"character", "words", "sentencepiece", "gpt2", "saved"}},
      {"joint", &TokenizerSettings::joint, "pairs: whether both sides share one tokenizer"}}},
    {{{"unknown", &TokenizerSettings::unknown, "an unknown character is an error, or all share one token",
       Names{"error", "token"}}},
     "character",
     has_kind("character")},
    {{{"minimum_count", part(&TokenizerSettings::words, &WordOptions::minimum_count), "rarer words are unknown",
       Range{.low = 1}},
      {"multiple", part(&TokenizerSettings::words, &WordOptions::multiple),
       "the vocabulary is padded to a multiple of this number", Range{1, most_pieces}},
      {"vocabulary", &TokenizerSettings::vocabulary, "a file with a word in each line, instead of the training split",
       a_path}},
     "words",
     has_kind("words")},
    {{{"model", part(&TokenizerSettings::pieces, &SentencePieceOptions::model), "the kind of the subword model",
       Names{"unigram", "bpe"}},
      {"vocabulary_size", part(&TokenizerSettings::pieces, &SentencePieceOptions::vocabulary_size),
       "the number of pieces, special tokens included", Range{special_token_count + 1, most_pieces}}},
     "sentencepiece",
     has_kind("sentencepiece")},
    {{{"lower_case", lower_case, "whether text is lower-cased"}},
     "words and sentencepiece",
     [](const TokenizerSettings& settings) { return settings.kind == "words" || settings.kind == "sentencepiece"; }},
    {{{"vocab", "string", "required", "the published file `vocab.json`", read_vocab, a_path},
      {"merges", &TokenizerSettings::merges, "the published file `merges.txt`", otherwise("required"), a_path},
      {"end_in_text", part(&TokenizerSettings::gpt2, &Gpt2Options::end_in_text),
       "whether `<\\|endoftext\\|>` in a text is the end token"}},
     "gpt2",
     has_kind("gpt2")},
    {{{"path", &TokenizerSettings::path, "a file such as a run's `tokenizer.json`, or a Hugging Face folder", needed,
       a_path}},
     "saved",
     has_kind("saved")}};

const Keys<PrivacyOptions> privacy_keys = {
    {{{"clip_norm", &PrivacyOptions::clip_norm, "the norm to which the gradient of a row is clipped",
       Bounds{least, infinity, "above 0"}, needed},
      {"noise_multiplier", &PrivacyOptions::noise_multiplier,
       "the standard deviation of the noise, in units of `clip_norm`", at_least_0, needed, keeps(of_noise)},
      {"delta", &PrivacyOptions::delta, "the delta of (epsilon, delta)-differential privacy",
       Bounds{least, 1, "above 0 and below 1"}, needed}}}};

const Keys<SearchOptions> search_keys = {
    {{{"beam_size", &SearchOptions::beam_size, "hypotheses that survive each token; 1: greedy", Range{1, 4096}},
      {"length_penalty", &SearchOptions::length_penalty, "how length changes scores", Names{"none", "wu", "power"}},
      {"alpha", &SearchOptions::alpha, "the exponent of the length penalty"},
      {"max_length", &SearchOptions::max_length, "the maximum tokens of an answer", Range{1, longest_row}},
      {"length_factor", &SearchOptions::length_factor,
       "limits answers to this multiple of the source's tokens; 0 with `length_extra` 0: no limit"},
      {"length_extra", &SearchOptions::length_extra, "is added to the limit of `length_factor`", Range{0, longest_row}},
      {"early_stopping", &SearchOptions::early_stopping, "a search ends with `beam_size` finished hypotheses"}}}};

namespace {
auto in_sampling(auto member) {
  return part(&Recipe::Samples::sampling, member);
}
}  // namespace

const Keys<Recipe::Samples> sample_keys = {
    {{{"every", &Recipe::Samples::every, "updates between samples; 0: with each evaluation", Range()},
      {"prompts", &Recipe::Samples::prompts, "texts that the model continues, or translates"},
      {"tokens", &Recipe::Samples::tokens, "the most tokens of a continuation", Range{1, longest_row}},
      {"temperature", in_sampling(&Sampling::temperature), "of continuations; 0: always the most likely token",
       at_least_0},
      {"top_k", in_sampling(&Sampling::top_k), "draws from this many of the most likely tokens; 0: from all", Range()},
      {"top_p", in_sampling(&Sampling::top_p), "draws from the most likely tokens with this share of the probability",
       Bounds{least, std::nextafter(1, 2), "above 0 and at most 1"}},
      {"function", &Recipe::Samples::function, "a function of the definition whose results are samples"},
      {"rows", &Recipe::Samples::rows, "the rows that it reads", Range{.low = 1}}}}};

const Keys<Recipe> batch_keys = {
    {{{"size", "integer, at least 1", "", "rows of a micro-batch; required without `tokens`", read_size}}},
    {{{"tokens", &Recipe::batch_tokens, "instead of `size`, the maximum tokens of a text input with padding",
       Range{0, most_batch_tokens}, otherwise("")},
      {"bucket", &Recipe::bucket, "lengths are rounded up to multiples of this", Range{1, longest_row},
       keeps(of_order)}},
     "rows with texts",
     has_rows_of_tokens},
    {{{"accumulate", part(&Recipe::trainer, &TrainerOptions::accumulate), "micro-batches of an update",
       Range{1, ranks::most_micro_batches}},
      {"shards", part(&Recipe::trainer, &TrainerOptions::shards),
       "parts of a batch, which several processes can compute", Range{1, ranks::most_shards}}}}};

void read_batch(Section section, Recipe& recipe) {
  read_section(section, batch_keys, recipe);
  if (has_rows_of_tokens(recipe) && (recipe.batch_size > 0) == (recipe.batch_tokens > 0))
    section.fail("", "needs either the key 'size' (rows) or 'tokens' (of a text), at least 1");
}

}  // namespace xtape::train
