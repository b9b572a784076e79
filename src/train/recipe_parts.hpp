/// Readers of the sections of a recipe.
#pragma once

#include "section.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

inline constexpr std::int64_t longest_row = 1 << 24;         ///< The largest row length of a recipe, in tokens.
inline constexpr Bounds at_least_0 = {.low = 0, .words = "at least 0"};
inline constexpr const char* standard_input = "/dev/stdin";  ///< The file that the path "-" means.

Recipe::Data read_data(Section section);
void read_image_data(Section& section, Recipe::Data& data);
/// What the section `data` of a recipe does not say of the preparation of images is as the folder says from which the
/// recipe starts, if it says so. Throws as read_image_preparation does.
void prepare_as_folder(const Json& data, Recipe& recipe);
/// Writes the preparation of images to the section `data` of a recipe.
void write_preparation(const Recipe::Data& data, Json& json);
/// The names of the data's sizes that {"from": …} can refer to.
std::vector<std::string> data_names(const Recipe::Data& data);
TokenizerSettings read_tokenizer(Section section);
/// Reads the batch sizes into the recipe, whose `data` must have been read.
void read_batch(Section section, Recipe& recipe);
SearchOptions read_search(Section section);
/// Reads the optimiser of all weights and its groups.
void read_optimizer(Section section, TrainerOptions& trainer);
PrivacyOptions read_privacy(Section section);
/// Linear and cosine schedules end by default with the steps of `fit`, or without steps with its epochs.
ScheduleOptions read_schedule(Section section, const Trainer::FitOptions& fit);

}  // namespace xtape::train
