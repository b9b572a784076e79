/// Pictures of runs, plays and attention, and the options for them.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "player/plan/plan.hpp"
#include "svg/svg.hpp"
#include "train/run/metrics.hpp"
#include "xtape/inspect.hpp"

namespace xtape::cli {

/// Adds --out FILE.svg, and says what is drawn if `about` is not empty. Otherwise the help says that the default is
/// `preset`. Without the option, `path` stays empty.
void add_picture(CLI::App& command, std::string& path, const std::string& preset, const std::string& about = "");

/// Returns `path`. If it is empty, returns the default and prints it, so that the user knows which file is written.
std::string picture_path(const std::string& path, const std::string& preset);

/// Returns the curves of metrics of runs over their updates, as `xtape plot` draws them. Without metrics, draws all
/// losses. Throws WrongInput if a run does not have a metric.
svg::Chart chart_of_runs(const std::vector<std::string>& runs, const std::vector<std::string>& metrics, bool log);

/// Returns the statistics in the lines of metrics.jsonl, as one map of modules and updates for each kind of number.
/// Throws WrongInput if there are no statistics.
svg::HeatMaps maps_of_statistics(const std::vector<train::Measured>& lines, const std::string& run);

/// Returns each buffer of the arena as a box at its offset, from the first to the last step that uses it.
svg::Chart chart_of_plan(const RecordedPlay& play, const Plan& plan);

/// Returns the error of every value in the order of playing, and the error that its node adds.
svg::Chart chart_of_errors(const std::vector<NodeError>& errors);

/// Returns the values that lead to a failure and have its shape, each as a map of at most 64 × 64 elements around the
/// first that fails. Throws WorkFailed if there are none.
svg::HeatMaps maps_of_failure(const Capsule& capsule);

}  // namespace xtape::cli
