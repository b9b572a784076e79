/// Readers for the sections of a recipe.
#pragma once

#include <cstdint>

#include "train/recipe/key_spec.hpp"
#include "xtape/optim.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Returns a schedule of a training for a model with these hyper-parameters, with its end in updates. If the end is
/// given in epochs, the schedule ends with the update that completes these epochs. An epoch has `epoch_batches`
/// batches. Throws Error if the data has no epochs, or if the warm-up is longer than the schedule.
ScheduleOptions schedule_of(ScheduleOptions schedule, const TrainerOptions& options, const Hyper& hyper,
                            std::int64_t epoch_batches);

/// Returns whether the schedule reaches its final rate at a step, and stays there.
bool has_end(const ScheduleOptions& options);

inline constexpr std::int64_t longest_row = 1 << 24;  ///< The maximum row length in a recipe, in tokens.
inline constexpr Bounds at_least_0 = {.low = 0, .words = "at least 0"};
inline constexpr const char* standard_input = "/dev/stdin";  ///< The file for the path "-".

/// The section `lora`.
struct LoraSettings {
  std::int64_t rank = 0;
  double alpha = 0;  ///< 0: not given.
  double dropout = 0;
  std::vector<std::string> targets = {"*"};
};
extern const Keys<LoraSettings> lora_keys;
/// Replaces the section `lora` of a recipe by the keys for which it stands: `definition`, `hyper`, `initialise` and
/// `trainable`. Does nothing without this section.
void resolve_lora(Json& root, const JsonNode& file, const std::vector<Setting>& settings);

/// Returns Recipe::text of the recipe `text` of `file` with `settings`, without checking what the recipe says.
std::string recipe_text(const std::string& text, const std::string& file, const std::vector<Setting>& settings = {});
/// Reads the text of a recipe, as Recipe::load does. `file` names it in errors, and its paths are relative to the
/// folder of `file`.
Recipe recipe_of_text(const std::string& text, const std::string& file, const std::vector<Setting>& settings);
/// Reads a recipe from `json`, the content of `file` after applying `settings`.
Recipe read_recipe(const Json& json, const JsonNode& file, const std::vector<Setting>& settings);

// The keys of sections.

extern const Keys<WeightSource> start_keys;
extern const Keys<TokenizerSettings> tokenizer_keys;
extern const Keys<Recipe> batch_keys;
extern const Keys<Recipe::Stage> stage_keys;
extern const Keys<OptimizerOptions> optimizer_keys;
extern const Keys<OptimizerGroup> group_keys;
extern const Keys<ScheduleOptions> schedule_keys;
extern const Keys<SearchOptions> search_keys;
extern const Keys<Recipe::Samples> sample_keys;
extern const Keys<PrivacyOptions> privacy_keys;
extern const Keys<LossUpdate> update_keys;
extern const Keys<EmaOptions> ema_keys;
inline constexpr Bounds decays = {.low = 0, .high = 1, .words = "in [0, 1)"};

/// Read sections into the recipe, whose `data` must already be read. Linear and cosine schedules end by default with
/// the steps of the recipe, or with its epochs if it has no steps.
void read_batch(Section section, Recipe& recipe);
void read_optimizer(Section section, Recipe& recipe);
/// Read values of the recipe `root`, whose batch and steps must already be read: stages, and a schedule or a list of
/// them.
void read_stages(Section& root, const std::string& name, Recipe& recipe);
void read_schedule(Section& root, const std::string& name, Recipe& recipe);
/// Reads the keys `updates`, which is `name`, and `simultaneous`. All other keys of the trainer must already be read.
void read_updates(Section& root, const std::string& name, Recipe& recipe);

}  // namespace xtape::train
