/// What a model makes at times of its training, for people to look at: the lines of samples.jsonl.
#pragma once

#include <string>
#include <vector>

#include "train/data/data_kind.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

inline constexpr const char* samples_file = "samples.jsonl";

/// Throws Error or DefinitionError if the samples of the recipe cannot be made: the model lacks a function, a prompt
/// cannot be encoded, or the function reads integers that the data does not have.
void check_samples(const Model& model, const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches);

/// Returns the lines of the samples after update `step`, for the weights that the run's model has. They depend on
/// nothing else but the recipe. All ranks must call it together, and get the same lines.
std::vector<std::string> samples_of(Run& run, std::int64_t step);

}  // namespace xtape::train
