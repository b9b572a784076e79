/// The measures of evaluations: their names, and which values are better.
#pragma once

#include <string>
#include <vector>

#include "xtape/trainer.hpp"

namespace xtape::train {

/// A measure of an evaluation.
struct Measure {
  std::string name;  ///< As a recipe's `best` names it: "loss", "accuracy", "loss on NAME".
  std::string key;   ///< In metrics.jsonl and reports: "validation_loss", "accuracy", "validation_loss on NAME".
  bool more_is_better = false;  ///< Whether larger values are better.
  double value = 0;
  bool better(double other) const { return more_is_better ? value > other : value < other; }
};

/// Returns the measure of this name, without a value. "" is the measure of recipes without `best`: the perplexity or,
/// without one, the loss.
Measure measure_named(const std::string& name, bool has_perplexity = false);
/// Returns all measures: those of the validation split, of which the loss is the first, then those of further sets.
std::vector<Measure> measures_of(const Evaluation& evaluation);

}  // namespace xtape::train
