// The sections `schedule` and `stages`.
#include <algorithm>

#include "model/language/formula.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "xtape/array.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

namespace {
using ScheduleKind = ScheduleOptions::Kind;

bool falls(const ScheduleOptions& options) {
  return options.kind == ScheduleKind::linear || options.kind == ScheduleKind::cosine ||
         options.kind == ScheduleKind::exponential;
}
bool is_noam(const ScheduleOptions& options) {
  return options.kind == ScheduleKind::noam;
}

void read_warmup(Section& section, const std::string& name, ScheduleOptions& options) {
  if (is_noam(options)) options.warmup = 4000;  // the published value
  section.read(name, options.warmup);
}

/// An expression is read by read_schedule, because it belongs to the options of the trainer.
void read_width(Section& section, const std::string& name, ScheduleOptions& options) {
  if (!section.value(name).is_string()) section.read(name, options.width, {.low = 1});
}
}  // namespace

bool has_end(const ScheduleOptions& options) {
  return falls(options) && options.restart_every == 0;
}

ScheduleOptions schedule_of(ScheduleOptions schedule, const TrainerOptions& options, const Hyper& hyper,
                            std::int64_t epoch_batches) {
  if (!options.schedule_width.empty())
    schedule.width = model::integer_of_formula(options.schedule_width, hyper, "'schedule.width'");
  if (schedule.steps > 0 || schedule.epochs == 0 || !schedule.parts.empty()) return schedule;
  if (epoch_batches == 0) throw Error("schedule: this data has no epochs; give its end as steps");
  std::int64_t micro_batches = epoch_batches;
  if (!checked_multiply(micro_batches, schedule.epochs)) throw Error("schedule: too many epochs");
  schedule.steps = (micro_batches - 1) / options.accumulate + 1;
  if (has_end(schedule) && schedule.steps < schedule.warmup) {
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

const Keys<ScheduleOptions> schedule_keys = {
    {{{"kind", &ScheduleOptions::kind, "the curve after the warm-up",
       Names{"constant", "linear", "cosine", "exponential", "inverse_sqrt", "noam"}, needed},
      {"rate", &ScheduleOptions::rate, "the rate after the warm-up; for `noam` a scale", at_least_0, needed},
      {"warmup", "integer, at least 0", "`0`; `noam` `4000`", "updates of the warm-up", read_warmup}}},
    {{{"final_rate", &ScheduleOptions::final_rate, "the learning rate at the end", at_least_0},
      {"restart_every", &ScheduleOptions::restart_every,
       "instead of an end: updates from `rate` to `final_rate`, after which the curve begins again; 0: no restarts"},
      {"restart_factor", &ScheduleOptions::restart_factor, "how many times longer each period is than the one before",
       Range{.low = 1}},
      {"steps", &ScheduleOptions::steps, "the step of `final_rate`, at least `warmup`",
       otherwise("the recipe's `steps`, or the end of its `epochs`")}},
     "linear, cosine and exponential",
     falls},
    {{{"width", "integer, at least 1, or an expression", "`512`", "the width of the model, such as `\"d_model\"`",
       read_width}},
     "noam",
     is_noam}};

namespace {
/// Reads one schedule. `steps` is its default end, or 0.
ScheduleOptions read_one(const Section& section, std::int64_t steps) {
  ScheduleOptions options;
  options.steps = steps;
  read_section(section, schedule_keys, options);
  return options;
}

/// Reads the parts of a list, whose `steps` also say how long they are. `steps` is the default end of the list, or 0.
ScheduleOptions read_list(Section& root, const std::string& name, std::int64_t steps) {
  ScheduleOptions list;
  for (Section& section : root.sections(name)) {
    if (section.value("width").is_string()) section.fail("width", "must be an integer in a list of schedules");
    std::int64_t length = std::max<std::int64_t>(0, steps);
    section.read("steps", length, {.low = 1});
    list.parts.push_back(read_one(section, length));
    list.parts.back().steps = section.has("steps") ? length : 0;
    if (has_end(list.parts.back())) list.parts.back().steps = length;
    steps -= length;
  }
  if (list.parts.empty()) root.fail(name, "must be a schedule, or a list of at least one");
  list.rate = list.parts[0].rate;
  return list;
}

/// Reads a schedule or a list of them.
ScheduleOptions read_any(Section& root, const std::string& name, std::int64_t steps) {
  if (root.value(name).is_array()) return read_list(root, name, steps);
  const Section section = root.section(name);
  ScheduleOptions options = read_one(section, steps);
  if (options.restart_every > 0 && section.has("steps"))
    section.fail("steps", "has no effect: a schedule with 'restart_every' has no end, unless it is in a list");
  return options;
}

void check(const Section& root, const std::string& name, const ScheduleOptions& options) {
  try {
    if (options.epochs == 0) rate_at(options, 1);
  } catch (const Error& error) {
    root.fail(name, std::string("is wrong: ") + error.what());
  }
}

void read_stage_schedule(Section& section, const std::string& name, Recipe::Stage& stage) {
  if (!section.has(name)) return;
  stage.schedule = {read_any(section, name, stage.steps)};
  check(section, name, stage.schedule[0]);
}
}  // namespace

const Keys<Recipe::Stage> stage_keys = {
    {{{"steps", &Recipe::Stage::steps, "updates of the stage",
       otherwise("required; in the last stage those that remain of the recipe's `steps`")},
      {"batch_size", &Recipe::Stage::batch_size, "instead of `batch.size`", otherwise("`batch.size`")},
      {"batch_tokens", &Recipe::Stage::batch_tokens, "instead of `batch.tokens`", otherwise("`batch.tokens`")},
      {"block_size", &Recipe::Stage::block_size, "texts: instead of `data.block_size`, at most that",
       otherwise("`data.block_size`")},
      {"max_length", &Recipe::Stage::max_length, "rows of tokens: instead of `data.max_length`, at most that",
       otherwise("`data.max_length`")},
      {"schedule", "section, list of sections", "the recipe's",
       "the learning rate, whose steps count from the beginning of the stage", read_stage_schedule}}}};

namespace {
void check_stage(const Section& section, const Recipe::Stage& stage, const Recipe& recipe) {
  const bool tokens = recipe.data.has_rows() && recipe.data.has_tokens();
  if (stage.batch_size > 0 && recipe.batch_size == 0)
    section.fail("batch_size", "needs 'batch.size': the recipe's batches have 'batch.tokens'");
  if (stage.batch_tokens > 0 && recipe.batch_tokens == 0)
    section.fail("batch_tokens", "needs 'batch.tokens': the recipe's batches have 'batch.size'");
  if (stage.block_size > 0 && recipe.data.has_rows())
    section.fail("block_size", "is for data of kind 'text', not '" + recipe.data.kind + "'");
  if (stage.block_size > recipe.data.block_size)
    section.fail("block_size", "must be at most 'data.block_size', " + std::to_string(recipe.data.block_size) +
                                   ", to which the model is made");
  if (stage.max_length > 0 && !tokens)
    section.fail("max_length", "is for rows of texts, which data of kind '" + recipe.data.kind + "' does not have");
  if (recipe.data.max_length > 0 && stage.max_length > recipe.data.max_length)
    section.fail("max_length", "must be at most 'data.max_length', " + std::to_string(recipe.data.max_length));
}
}  // namespace

void read_stages(Section& root, const std::string& name, Recipe& recipe) {
  std::int64_t end = 0;
  std::vector<Section> sections = root.sections(name);
  for (Section& section : sections) {
    Recipe::Stage stage;
    const bool last = recipe.stages.size() + 1 == sections.size();
    if (last) stage.steps = std::max<std::int64_t>(0, recipe.fit.steps - end);
    read_section(section, stage_keys, stage);
    if (stage.steps < 1)
      section.fail("steps", last ? "must be above 0, unless the recipe's 'steps' leave some for the last stage"
                                 : "must be above 0");
    check_stage(section, stage, recipe);
    end += stage.steps;
    recipe.stages.push_back(stage);
  }
  if (recipe.fit.steps == 0) recipe.fit.steps = end;
}

void read_schedule(Section& root, const std::string& name, Recipe& recipe) {
  ScheduleOptions& options = recipe.trainer.schedule;
  const auto has_schedule = [](const Recipe::Stage& stage) { return !stage.schedule.empty(); };
  if (std::ranges::any_of(recipe.stages, has_schedule)) {
    if (root.has(name)) root.fail(name, "has no effect: 'stages' have schedules");
    if (!std::ranges::all_of(recipe.stages, has_schedule))
      root.fail("stages", "must all have a 'schedule', or none: the recipe's 'schedule' is for all");
    for (const Recipe::Stage& stage : recipe.stages) {
      ScheduleOptions& part = options.parts.emplace_back();
      part.steps = &stage == &recipe.stages.back() ? 0 : stage.steps;
      part.parts = stage.schedule;
    }
    options.rate = options.parts[0].parts[0].rate;
    return;
  }
  root.need({name});
  options = read_any(root, name, recipe.fit.steps);
  if (is_noam(options) && root.value(name).is_object() && root.value(name).contains("width") &&
      root.value(name)["width"].is_string())
    recipe.trainer.schedule_width = root.value(name)["width"];
  if (options.steps == 0 && has_end(options) && options.parts.empty()) options.epochs = recipe.fit.epochs;
  check(root, name, options);
}

}  // namespace xtape::train
