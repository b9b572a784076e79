// The keys of the whole recipe.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "model/definition/definition.hpp"
#include "model/language/formula.hpp"
#include "player/plan/memory.hpp"
#include "train/data/data_kind.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
constexpr const char* of_model = "the run's weights belong to the model of its definition.json";
constexpr const char* of_start = "it says how the run has begun";
constexpr const char* of_tokens = "the run's weights belong to the tokens of its tokenizer";
constexpr const char* of_data = "the run's weights and its position in the data belong to it";
constexpr const char* of_stages = "they determine the run's position in the data: only 'steps' can make it longer";
constexpr const char* of_seed = "it determines the order of the data and all random numbers of the run";

void read_version(Section& root, const std::string& name, Recipe&) {
  std::int64_t version = 0;
  root.read(name, version);
  if (version != model::format_version)
    root.fail(name, "must be " + std::to_string(model::format_version) +
                        ": 'xtape check --fix FILE' rewrites a recipe of version 1");
}

void read_name(Section& root, const std::string& name, Recipe& recipe) {
  root.read(name, recipe.name);
  if (recipe.name.empty() || recipe.name.find('/') != std::string::npos)
    root.fail(name, "must be a name without '/': run directories are named after it");
}

void read_about(Section& root, const std::string& name, Recipe& recipe) {
  if (!root.value(name).is_array()) return root.read(name, recipe.about);
  std::vector<std::string> lines;
  root.read(name, lines);
  recipe.about = joined(lines, std::identity{}, " ");
}

HyperSetting read_hyper(const Section& section, const std::string& name, const Json& value, const Recipe::Data& data) {
  if (value.is_string()) return {name, value.get<std::string>()};
  if (value.is_number() || value.is_boolean()) return {name, value.dump()};
  if (!value.is_object() || value.size() != 1 || !value.contains("from") || !value["from"].is_string())
    section.fail(name, R"(must be a number, true, false, a string, or {"from": "vocabulary"}, not )" + value.dump());
  const std::string text = value["from"];
  try {
    model::check_formula(text, kind_of(data).size_names(data), "\"from\"");
  } catch (const DefinitionError& error) {
    section.fail(name, std::string("is not a valid expression over the data: ") + error.what());
  }
  return {name, text, true};
}

void read_all_hyper(Section& root, const std::string& name, Recipe& recipe) {
  const Section hyper = root.section(name);
  for (const auto& [key, value] : hyper.json().items())
    recipe.hyper.push_back(read_hyper(hyper, key, value, recipe.data));
}

void read_weights(Section& root, const std::string& name, Recipe& recipe) {
  const Section weights = root.section(name);
  for (const auto& [pattern, value] : weights.json().items()) {
    if (!value.is_string()) weights.fail(pattern, "must be the name of a dtype: \"Q8_0\", \"Q4_K\", \"bfloat16\"");
    try {
      recipe.weights.add(pattern, dtype_named(value.get<std::string>()));
    } catch (const DtypeError& error) {
      weights.fail(pattern, error.what() + std::string("; or a block format: Q8_0, Q6_K, Q5_K, Q4_K or Q4_0"));
    }
  }
}

void read_tokenizer(Section& root, const std::string& name, Recipe& recipe) {
  TokenizerSettings& settings = recipe.tokenizer;
  const bool texts = recipe.data.has_tokens();
  if (!texts && !root.has(name)) {
    settings.kind = "";
    return;
  }
  if (!texts && !kind_of(recipe.data).may_be_tokens) root.fail(name, "is for texts, not for " + recipe.data.kind);
  if (root.has(name) || recipe.from.empty()) {
    read_section(root.section(name), tokenizer_keys, settings);
  } else {  // uses the tokenizer of the folder's model
    settings.kind = "saved";
    settings.path = recipe.from;
  }
  if (!texts && is_made(settings))
    root.fail(name, "must be one from files, such as \"saved\": data of kind '" + recipe.data.kind +
                        "' has no texts from which one could be made");
  if (settings.kind == "gpt2" && texts && recipe.data.has_rows())
    root.fail(name, "is \"gpt2\", which has no padding and start tokens: it needs data of kind 'text', not '" +
                        recipe.data.kind + "'");
}

void need_epochs(const Section& root, const std::string& name, const Recipe& recipe, const char* what) {
  if (!recipe.stages.empty())
    root.fail(name, std::string(what) + "needs epochs, which a training in 'stages' does not have");
  if (!recipe.data.has_epochs())
    root.fail(name, std::string(what) +
                        "needs epochs, which this data does not have: rows, and "
                        "text with 'windows' \"consecutive\" or \"shuffled\" have them");
}

void read_epochs(Section& root, const std::string& name, Recipe& recipe) {
  root.read(name, recipe.fit.epochs);
  if (recipe.fit.steps == 0 && recipe.fit.epochs == 0) {
    for (const char* key : {"steps", "epochs"})
      if (root.has(key)) root.fail(key, "must be above 0: a recipe has 'steps' or 'epochs'");
    root.fail("", "needs the key 'steps' or 'epochs'");
  }
  if (recipe.fit.epochs > 0) need_epochs(root, name, recipe, "");
}

/// Reads updates between two events, or "epoch".
void read_interval(Section& root, const std::string& name, const Recipe& recipe, std::int64_t& every, bool& epochs) {
  if (!root.has(name)) return;
  epochs = root.read_or(name, every, "epoch");
  if (!epochs) return;
  need_epochs(root, name, recipe, "\"epoch\" ");
  every = 0;
}

void read_evaluate_every(Section& root, const std::string& name, Recipe& recipe) {
  recipe.fit.evaluate_epochs = recipe.fit.epochs > 0;
  read_interval(root, name, recipe, recipe.fit.evaluate_every, recipe.fit.evaluate_epochs);
}

void read_checkpoint_every(Section& root, const std::string& name, Recipe& recipe) {
  recipe.checkpoint_every = recipe.fit.evaluate_every;
  recipe.checkpoint_epochs = recipe.fit.evaluate_epochs;
  read_interval(root, name, recipe, recipe.checkpoint_every, recipe.checkpoint_epochs);
}

void read_keep(Section& root, const std::string& name, Recipe& recipe) {
  if (root.read_or(name, recipe.keep, "all", {.low = 1})) recipe.keep = 0;
}

void read_measure(Section& root, const std::string& name, Recipe& recipe) {
  std::vector<std::string> measures;
  root.read(name, measures);
  for (const std::string& measure : measures) {
    if (measure != "bleu" && measure != "exact_match")
      root.fail(name, R"(must be a list of "bleu" and "exact_match", without ")" + measure + "\"");
    if (!recipe.data.has_answers()) root.fail(name, "needs pairs, or documents with a 'prompt_end'");
    (measure == "bleu" ? recipe.measure_bleu : recipe.measure_exact_match) = true;
  }
}

void read_precision(Section& root, const std::string& name, Recipe& recipe) {
  if (root.value(name) == "float16" || root.value(name) == "fp16")
    root.fail(name,
              "must be \"float32\", \"bf16x3\", \"bf16\", \"int8\" or \"int8_training\": small gradients would be 0 in "
              "float16, which has no faster products here either; use \"bf16\"");
  root.read(name, recipe.trainer.precision, precision_names());
}

void read_bits(Section& root, const std::string& name, Recipe& recipe) {
  root.read(name, recipe.trainer.bits, {"usual", "same", "fast"});
  if (recipe.trainer.bits == Bits::same && rounds_to_bfloat16(recipe.trainer.precision))
    root.fail(name,
              "is \"same\", which needs 'precision' \"float32\", \"int8\" or \"int8_training\": only some processors "
              "have units for bfloat16");
}

void read_privacy(Section& root, const std::string& name, Recipe& recipe) {
  if (!root.has(name)) return;
  read_section(root.section(name), privacy_keys, recipe.trainer.privacy);
  if (!recipe.stages.empty()) root.fail(name, "needs batches of one kind, and cannot be with 'stages'");
  if (!recipe.data.has_rows())
    root.fail(name, "protects rows, which data of kind 'text' does not have: documents, pairs and tables have them");
  if (recipe.batch_tokens > 0)
    root.fail(name,
              "needs 'batch.size', so that an update has each row with the same probability, not "
              "'batch.tokens'");
  if (recipe.trainer.precision == Precision::bf16)
    root.fail(name, "needs 'precision' \"float32\" or \"bf16x3\": norms of gradients are not exact in \"bf16\"");
}

void read_memory(Section& root, const std::string& name, Recipe& recipe) {
  const Json& value = root.value(name);
  if (value.is_null()) return;
  const auto bytes = value.is_string() ? bytes_in(value.get<std::string>()) : std::nullopt;
  if (!bytes)
    root.fail(name, "must be a size such as \"300 MiB\", not " + value.dump() + "; the units are " + byte_units);
  recipe.trainer.memory = *bytes;
}

void read_changes(Section& root, const std::string& name, Recipe&) {
  for (Section& change : root.sections(name)) {
    change.need({"until_step", "was"});
    std::int64_t step = 0;
    change.read("until_step", step);
    change.section("was");
    change.done();
  }
}

void read_threads(Section& root, const std::string& name, Recipe& recipe) {
  std::int64_t threads = recipe.trainer.threads;
  root.read(name, threads, {0, most_threads});
  recipe.trainer.threads = static_cast<int>(threads);
}

void read_ema(Section& root, const std::string& name, Recipe& recipe) {
  EmaOptions& ema = recipe.trainer.ema;
  if (root.value(name).is_number())
    root.read(name, ema.decay, decays);
  else if (root.has(name))
    read_section(root.section(name), ema_keys, ema);
}

void read_start_sources(Section& root, const std::string& name, Recipe& recipe) {
  for (Section& each : root.sections(name)) read_section(each, start_keys, recipe.start.emplace_back());
}

void read_samples(Section& root, const std::string& name, Recipe& recipe) {
  if (!root.has(name)) return;
  Recipe::Samples& samples = recipe.samples;
  Section section = root.section(name);
  read_section(section, sample_keys, samples);
  if (samples.prompts.empty() && samples.function.empty()) section.fail("", "needs 'prompts' or 'function'");
}

auto in_trainer(auto member) {
  return part(&Recipe::trainer, member);
}
auto in_fit(auto member) {
  return part(&Recipe::fit, member);
}
/// Calls a reader of a section.
template <class Reader>
Key<Recipe>::Read in_section(Reader reader) {
  return [=](Section& root, const std::string& name, Recipe& recipe) { reader(root.section(name), recipe); };
}

const Keys<Recipe> recipe_keys = {
    {{{"xtape", "2", "", "the version of the format", read_version, needed, keeps("a run keeps it")},
      {"name", "string", "", "without `--out`, a run is `runs/NAME-DATE`", read_name, needed, keeps(of_start)},
      {"about", "string, list of strings", "", "a description for people", read_about},
      {"from", &Recipe::from, "a Hugging Face folder or a GGUF file with the initial weights", a_path, keeps(of_start)},
      {"adapter", &Recipe::adapter,
       "with `from`: low-rank adapters to start with, a folder in PEFT's format or a GGUF file", a_path,
       keeps(of_start)},
      {"definition", &Recipe::definition, "a path, or the name of an installed one; required without `from`", a_path,
       keeps(of_model)},
      {"original", &Recipe::original, "", keeps("a run keeps it")},
      {"start", "section, list of sections", "", "runs and files with initial weights", read_start_sources,
       keeps(of_start)},
      {"lora", "section", "",
       "low-rank adapters, which are trained alone: stands for `definition`, `hyper`, `initialise` and `trainable`",
       [](Section& section, const std::string& name, Recipe&) { section.value(name); }, keeps(of_start)},
      {"initialise", &Recipe::initialise,
       "with `from` and `start`: patterns of weights that may be missing or differ in shape", keeps(of_start)},
      {"weights", "section", "",
       "the dtypes in which weights that are not trained are stored, by patterns of their names: `{\"*\": \"Q4_K\"}`",
       read_weights, keeps(of_model)},
      {"frozen", in_trainer(&TrainerOptions::frozen), "patterns of weights that are not trained"},
      {"trainable", in_trainer(&TrainerOptions::trainable), "patterns of the weights that are trained, instead of all"},
      {"data", "section", "", "the data", in_section(read_data), needed, keeps(of_data)},
      {"hyper", "section", "", "hyper-parameters: numbers, expressions, or properties of the data", read_all_hyper,
       keeps(of_model)},
      {"tokenizer", "section", "characters; with `from` the folder's", "how texts become tokens", read_tokenizer,
       keeps(of_tokens)},
      {"batch", "section", "", "the rows of an update", in_section(read_batch), needed},
      {"optimizer", "section", "", "the optimiser and its settings", in_section(read_optimizer), needed},
      {"steps", in_fit(&Trainer::FitOptions::steps), "the maximum number of updates: `\"steps\": 2000`", otherwise("")},
      {"stages", "list of sections", "", "parts of the training with batches, lengths and schedules of their own",
       read_stages, keeps(of_stages)},
      {"epochs", "integer, at least 0", "", "the maximum number of epochs, for data that has epochs", read_epochs},
      {"evaluate_every", "integer, `\"epoch\"`", "`0`; with `epochs` `\"epoch\"`",
       "updates between evaluations; there is always one at the end", read_evaluate_every},
      {"evaluate_batches", &Recipe::evaluate_batches,
       "the most batches of which an evaluation measures the loss: spread over the split, or the first if rows "
       "continue; 0: all",
       Range{.low = 0}},
      {"checkpoint_every", "integer, `\"epoch\"`", "`evaluate_every`",
       "updates between checkpoints; there is always one at the end", read_checkpoint_every},
      {"patience", in_fit(&Trainer::FitOptions::patience),
       "the training ends after this many evaluations without a new best; 0: never early"},
      {"best", in_fit(&Trainer::FitOptions::best),
       "the measure of the best evaluation: `loss`, `perplexity`, `accuracy`, `bleu`, `exact_match`, or one of several "
       "losses; of a further validation set `loss on NAME`",
       otherwise("perplexity, or without it the loss")},
      {"statistics_every", in_fit(&Trainer::FitOptions::statistics_every),
       "updates between statistics of all modules; 0: none; `--statistics` sets 100"},
      {"watch", in_fit(&Trainer::FitOptions::watch),
       "values whose ranges the training prints and records, such as `h.3.attn.scores`; short: `--watch NAME`"},
      {"watch_every", in_fit(&Trainer::FitOptions::watch_every),
       "updates between the prints of `watch`; short: `--watch-every N`", Range{.low = 1}},
      {"samples", "section", "", "what the model makes at times of the training, in `samples.jsonl`", read_samples},
      {"keep", "integer, at least 1, `\"all\"`", "`2`", "checkpoints that are kept in addition to the best", read_keep},
      {"measure", "list of `\"bleu\"`, `\"exact_match\"`", "", "metrics of evaluations besides the loss", read_measure},
      {"schedule", "section, list of sections", "",
       "the learning rate as a function of the update; required unless "
       "all `stages` have their own",
       read_schedule},
      {"clip", in_trainer(&TrainerOptions::clip), "the global norm to which gradients are clipped",
       Bounds{.low = 0, .words = "at least 0: with 0, gradients are not clipped"}},
      {"updates", "list of sections", "", "several losses, which take turns, instead of the function `loss`",
       read_updates},
      {"simultaneous", in_trainer(&TrainerOptions::simultaneous),
       "with `updates`: whether each update has the gradients of all losses on one batch"},
      {"ema", "number in [0, 1), section", "", "a moving average of the weights: its decay, `\"ema\": 0.999`",
       read_ema},
      {"precision", R"(`"float32"`, `"bf16x3"`, `"bf16"`, `"int8"`, `"int8_training"`)", "`\"float32\"`",
       "the precision of the operands of matrix products", read_precision},
      {"bits", R"(`"usual"`, `"same"`, `"fast"`)", "`\"usual\"`",
       "whether every processor computes the same bits; `\"same\"` refuses what would differ", read_bits},
      {"privacy", "section", "", "differential privacy for the rows of the training split", read_privacy},
      {"memory", "size", "", "the memory limit of the process, such as `\"300 MiB\"`", read_memory},
      {"search", "section", "greedy", "how `xtape translate` searches",
       in_section([](const Section& section, Recipe& recipe) { read_section(section, search_keys, recipe.search); })},
      {"seed", in_trainer(&TrainerOptions::seed), "the seed of the initial weights, the data order and the random ops",
       keeps(of_seed)},
      {"threads", "integer, at least 0", "`0`", "the number of threads; 0: one for each core", read_threads},
      {"changes", "", "", "", read_changes, keeps("the run writes it")}}}};

void check_best(const Section& root, const Recipe& recipe) {
  const std::string &best = recipe.fit.best, on = " on ", what = best.substr(0, best.find(on));
  if ((what == "bleu" && !recipe.measure_bleu) || (what == "exact_match" && !recipe.measure_exact_match))
    root.fail("best", "is \"" + best + "\": 'measure' must list \"" + what + "\"");
  if (what == best) return;
  std::vector<std::string> names;
  for (const auto& [name, files] : recipe.data.sets) names.push_back(name);
  if (const std::string name = best.substr(what.size() + on.size()); !contains(names, name))
    root.fail("best",
              "is \"" + best + "\", but 'data.validation' has no set '" + name + "'" + did_you_mean(name, names));
}
}  // namespace

Recipe read_recipe(const Json& json, const JsonNode& file, const std::vector<Setting>& settings) {
  Recipe recipe;
  Section root(json, file, settings);
  read_keys(root, recipe_keys, recipe);
  if (!recipe.adapter.empty() && recipe.from.empty()) root.fail("adapter", "needs 'from', the folder of its base");
  if (recipe.from.empty() && !root.has("definition")) root.fail("", "needs the key 'definition' or 'from'");
  check_best(root, recipe);
  root.exclude("trainable", "frozen");
  if (root.has("trainable") && recipe.trainer.trainable.empty()) root.fail("trainable", "names no weight to train");
  if (recipe.fit.patience > 0 && recipe.fit.evaluate_every == 0 && !recipe.fit.evaluate_epochs)
    root.fail("patience", "needs evaluations before the last update: give 'evaluate_every'");
  root.done();
  return recipe;
}

const std::vector<KeyTable>& key_tables() {
  static const std::vector<KeyTable> tables = [] {
    std::vector<KeyTable> all = {{"", recipe_keys}, {"data", data_keys()}};
    for (const DataKind* kind : data_kinds()) all.emplace_back(std::string("data of kind ") + kind->name, kind->keys);
    for (const KeyTable& more : {KeyTable("data.resize", resize_keys),
                                 {"data.normalise", normalise_keys},
                                 {"start", start_keys},
                                 {"lora", lora_keys},
                                 {"data.corruption", corruption_keys},
                                 {"tokenizer", tokenizer_keys},
                                 {"batch", batch_keys},
                                 {"optimizer", optimizer_keys},
                                 {"optimizer.groups", group_keys},
                                 {"stages", stage_keys},
                                 {"schedule", schedule_keys},
                                 {"updates", update_keys},
                                 {"ema", ema_keys},
                                 {"samples", sample_keys},
                                 {"search", search_keys},
                                 {"privacy", privacy_keys}})
      all.push_back(more);
    return all;
  }();
  return tables;
}

}  // namespace xtape::train
