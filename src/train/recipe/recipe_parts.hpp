/// Readers for the sections of a recipe.
#pragma once

#include <cstdint>

#include "train/recipe/section.hpp"
#include "xtape/optim.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

// Schedules whose end is given in epochs.

/// Returns the schedule with its end in updates. If the end is given in epochs, the schedule ends with the update that
/// completes these epochs. An epoch has `epoch_batches` batches, and an update reads `accumulate` batches. Throws Error
/// if the data has no epochs, or if the warm-up is longer than the schedule.
ScheduleOptions with_steps(ScheduleOptions schedule, std::int64_t epoch_batches, std::int64_t accumulate);

inline constexpr std::int64_t longest_row = 1 << 24;  ///< The maximum row length in a recipe, in tokens.
inline constexpr Bounds at_least_0 = {.low = 0, .words = "at least 0"};
inline constexpr const char* standard_input = "/dev/stdin";  ///< The file for the path "-".

/// Returns Recipe::text of the recipe in a file, without checking what the recipe says.
std::string recipe_text(const std::string& file);
TokenizerSettings read_tokenizer(Section section);
/// Reads the batch sizes into the recipe. Its `data` must already be read.
void read_batch(Section section, Recipe& recipe);
SearchOptions read_search(Section section);
/// Reads the optimiser of all weights and its groups.
void read_optimizer(Section section, TrainerOptions& trainer);
PrivacyOptions read_privacy(Section section);
/// Reads the schedule. Linear and cosine schedules end by default with the steps of `fit`, or with its epochs if it has
/// no steps.
ScheduleOptions read_schedule(Section section, const Trainer::FitOptions& fit);

}  // namespace xtape::train
