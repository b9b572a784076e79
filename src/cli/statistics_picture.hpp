/// The picture of the statistics of modules over the updates of a run.
#pragma once

#include <string>
#include <vector>

#include "train/run/metrics.hpp"

namespace xtape::cli {

/// Draws the statistics in the lines of metrics.jsonl to an SVG file, as one map of modules and updates for each kind
/// of number. Throws WrongInput if there are no statistics. Errors of draw_svg propagate.
void draw_statistics(const std::vector<train::Measured>& lines, const std::string& run, const std::string& path);

}  // namespace xtape::cli
