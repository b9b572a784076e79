#include "train/recipe/recipe_parts.hpp"

#include <map>

#include "base/messages/wording.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "player/plan/memory.hpp"
#include "ranks/shard_tree.hpp"
#include "xtape/array.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

ScheduleOptions with_steps(ScheduleOptions schedule, std::int64_t epoch_batches, std::int64_t accumulate) {
  if (schedule.steps > 0 || schedule.epochs == 0) return schedule;
  if (epoch_batches == 0) throw Error("schedule: this data has no epochs; give its end as steps");
  std::int64_t micro_batches = epoch_batches;
  if (!checked_multiply(micro_batches, schedule.epochs)) throw Error("schedule: too many epochs");
  schedule.steps = (micro_batches - 1) / accumulate + 1;
  using Kind = ScheduleOptions::Kind;
  const bool ends = schedule.kind == Kind::linear || schedule.kind == Kind::cosine;
  if (ends && schedule.steps < schedule.warmup) {
    const auto counted = [](std::int64_t count, const char* what) {
      return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
    };
    throw Error("schedule: " + counted(schedule.epochs, "epoch") + " of this data " +
                (schedule.epochs == 1 ? "is " : "are ") + counted(schedule.steps, "update") + ", fewer than the " +
                std::to_string(schedule.warmup) + " of schedule.warmup");
  }
  rate_at(schedule, 1);  // throws if another option of the schedule is wrong
  return schedule;
}

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
/// Half of the smallest positive float32. A larger number does not become 0 in float32.
constexpr double least_epsilon = std::numeric_limits<float>::denorm_min() / 2.0;
}  // namespace

namespace {
/// Reads the options of an optimiser on top of `options`. If the kind changes, starts from the defaults of the new
/// kind.
void read_options(Section& section, OptimizerOptions& options) {
  OptimizerOptions::Kind kind = options.kind;
  section.read("kind", kind, {"sgd", "adam", "adamw"});
  if (kind != options.kind) options = {};
  options.kind = kind;
  if (options.kind == OptimizerOptions::Kind::sgd) {
    section.read("momentum", options.momentum, {0, 1, "in [0, 1)"});
  } else {
    const Json& betas = section.value("betas");
    if (!betas.is_null()) {
      if (!betas.is_array() || betas.size() != 2 || !betas[0].is_number() || !betas[1].is_number())
        section.fail("betas", "must be a list of two numbers, not " + betas.dump());
      options.beta1 = betas[0];
      options.beta2 = betas[1];
      const auto right = [](double beta) { return beta >= 0 && beta < 1; };
      if (!right(options.beta1) || !right(options.beta2)) section.fail("betas", "must be two numbers in [0, 1)");
    }
    section.read("epsilon", options.epsilon, {least_epsilon, infinity, "above 0, in float32 too"});
  }
  section.read("weight_decay", options.weight_decay, at_least_0);
  section.read("decay_all", options.decay_all);
}

/// Reads a group. If the group does not set an option, the option for all weights applies.
OptimizerGroup read_group(Section section, const OptimizerOptions& all) {
  OptimizerGroup group{"", all};
  section.need({"weights"});
  section.read("weights", group.weights);
  if (group.weights.empty()) section.fail("weights", "must be a pattern of names of weights, such as \"*.bias\"");
  section.read("frozen", group.options.frozen);
  for (const char* key : {"kind", "rate", "momentum", "betas", "epsilon", "weight_decay", "decay_all"})
    if (group.options.frozen && section.has(key)) section.fail(key, "has no effect on weights that are 'frozen'");
  read_options(section, group.options);
  if (section.has("rate")) section.read("rate", group.options.rate.emplace(), at_least_0);
  section.done();
  return group;
}
}  // namespace

void read_optimizer(Section section, TrainerOptions& trainer) {
  section.need({"kind"});
  read_options(section, trainer.optimizer);
  for (Section& group : section.sections("groups")) trainer.groups.push_back(read_group(group, trainer.optimizer));
  section.done();
}

ScheduleOptions read_schedule(Section section, const Trainer::FitOptions& fit) {
  using Kind = ScheduleOptions::Kind;
  ScheduleOptions options;
  options.steps = fit.steps;
  section.need({"kind", "rate"});
  section.read("kind", options.kind, {"constant", "linear", "cosine", "inverse_sqrt", "noam"});
  section.read("rate", options.rate, at_least_0);
  if (options.kind == Kind::noam) options.warmup = 4000;  // the published value
  section.read("warmup", options.warmup);
  if (options.kind == Kind::linear || options.kind == Kind::cosine) {
    section.read("final_rate", options.final_rate, at_least_0);
    section.read("steps", options.steps);
    if (options.steps == 0) options.epochs = fit.epochs;
  }
  if (options.kind == Kind::noam) section.read("width", options.width, {.low = 1});
  section.done();
  try {
    if (options.epochs == 0) rate_at(options, 1);
  } catch (const Error& error) {
    section.fail("", std::string("is wrong: ") + error.what());
  }
  return options;
}

TokenizerSettings read_tokenizer(Section section) {
  TokenizerSettings settings;
  section.read("kind", settings.kind, {"character", "words", "sentencepiece", "gpt2", "saved"});
  section.read("joint", settings.joint);
  if (settings.kind == "character") {
    section.read("unknown", settings.unknown, {"error", "token"});
  } else if (settings.kind == "words") {
    section.read("minimum_count", settings.words.minimum_count, {.low = 1});
    section.read("lower_case", settings.words.lower_case);
    section.read("multiple", settings.words.multiple, {1, most_pieces});
    section.read("vocabulary", settings.vocabulary);
  } else if (settings.kind == "sentencepiece") {
    section.read("model", settings.pieces.model, {"unigram", "bpe"});
    section.read("vocabulary_size", settings.pieces.vocabulary_size, {special_token_count + 1, most_pieces});
    section.read("lower_case", settings.pieces.lower_case);
  } else if (settings.kind == "gpt2") {
    if (!section.has("vocab") || !section.has("merges"))
      section.fail("", "needs the keys 'vocab' and 'merges', the files vocab.json and merges.txt of GPT-2");
    section.read("vocab", settings.vocab);
    section.read("merges", settings.merges);
    section.read("end_in_text", settings.gpt2.end_in_text);
  } else {
    section.need({"path"});
    section.read("path", settings.path);
  }
  section.done();
  return settings;
}

PrivacyOptions read_privacy(Section section) {
  constexpr double least = std::numeric_limits<double>::denorm_min();
  PrivacyOptions options;
  section.need({"clip_norm", "noise_multiplier", "delta"});
  section.read("clip_norm", options.clip_norm, {least, infinity, "above 0"});
  section.read("noise_multiplier", options.noise_multiplier, at_least_0);
  section.read("delta", options.delta, {least, 1, "above 0 and below 1"});
  section.done();
  return options;
}

SearchOptions read_search(Section section) {
  SearchOptions options;
  section.read("beam_size", options.beam_size, {1, 4096});
  section.read("length_penalty", options.length_penalty, {"none", "wu", "power"});
  section.read("alpha", options.alpha);
  section.read("max_length", options.max_length, {1, longest_row});
  section.read("length_factor", options.length_factor);
  section.read("length_extra", options.length_extra, {0, longest_row});
  section.read("early_stopping", options.early_stopping);
  section.done();
  return options;
}

void read_batch(Section section, Recipe& recipe) {
  // A row of text has block_size tokens. For other data, the length of rows is not known until the data is read.
  const bool rows = recipe.data.has_rows() && recipe.data.has_tokens();
  if (!rows) section.need({"size"});
  const std::int64_t tokens = recipe.data.has_rows() ? 1 : recipe.data.block_size;  // minimum number of tokens in a row
  section.read("size", recipe.batch_size, {section.has("tokens") ? 0 : 1, most_batch_tokens / tokens});
  if (rows) {
    section.read("tokens", recipe.batch_tokens, {0, most_batch_tokens});
    section.read("bucket", recipe.bucket, {1, longest_row});
    if ((recipe.batch_size > 0) == (recipe.batch_tokens > 0))
      section.fail("", "needs either the key 'size' (rows) or 'tokens' (of a text), at least 1");
  }
  section.read("accumulate", recipe.trainer.accumulate, {.low = 1, .high = ranks::most_micro_batches});
  section.read("shards", recipe.trainer.shards, {.low = 1, .high = ranks::most_shards});
  section.done();
}

}  // namespace xtape::train
