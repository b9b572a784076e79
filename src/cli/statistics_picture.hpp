/// The picture of the statistics of modules over the updates of a run.
#pragma once

#include <string>
#include <vector>

#include "metrics.hpp"

namespace xtape::cli {

/// Draws the statistics among the lines of metrics.jsonl as maps of modules and updates, one for each kind of number,
/// to an SVG file. Throws WrongInput if there are none, and the errors of draw_svg.
void draw_statistics(const std::vector<train::Measured>& lines, const std::string& run, const std::string& path);

}  // namespace xtape::cli
