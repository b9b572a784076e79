/// The options of a prediction for more threads, and its JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.hpp"
#include "xtape/team_profile.hpp"

namespace xtape::cli {

struct TeamArguments {
  int threads = 0;  ///< 0: no prediction.
  std::string meeting, bandwidth, cache;
};
/// Adds --as-if-threads and the options that describe the machine.
void add_team(CLI::App& command, TeamArguments& arguments);
/// Returns the machine of the options. What they leave out is measured here. Throws WrongInput.
TeamMachine machine_of(const TeamArguments& arguments);

/// The JSON of a prediction. With `by_module`, the rows have the key "site" instead of "op".
nlohmann::ordered_json prediction_json(const TeamPrediction& prediction, bool by_module);

/// Returns a number with a unit, such as 10Gbit, times the factor of the unit. Throws WrongInput if the number is not
/// above 0. `example` is a valid text.
double quantity_of(const std::string& option, const std::string& text, const std::map<std::string, double>& units,
                   const std::string& example);
/// Returns the bytes per second of a bandwidth such as 10Gbit, 800Mbit or 5GB. Throws WrongInput.
double bandwidth_of(const std::string& option, const std::string& text);

}  // namespace xtape::cli
