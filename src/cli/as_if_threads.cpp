#include "cli/as_if_threads.hpp"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/threads/threads.hpp"
#include "player/plan/memory.hpp"

namespace xtape::cli {

void add_team(CLI::App& command, TeamArguments& arguments) {
  CLI::Option* threads = add_option(command, "--as-if-threads", arguments.threads,
                                    "Predict the time on a machine with this many cores, and what keeps them idle")
                             ->check(CLI::Range(1, most_threads));
  add_option(command, "--meeting", arguments.meeting,
             "The time from the beginning of a parallel loop on two threads to the work of the other one, such as 2us "
             "(default: measured). Each further thread adds 0.1us")
      ->needs(threads);
  add_option(command, "--memory-bandwidth", arguments.bandwidth,
             "Between memory and all cores together, such as 40GB (default: measured with the cores of this machine)")
      ->needs(threads);
  add_option(command, "--cache", arguments.cache,
             "The size of the last-level cache, such as 32MiB (default: this one's)")
      ->needs(threads);
}

double quantity_of(const std::string& option, const std::string& text, const std::map<std::string, double>& units,
                   const std::string& example) {
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  const auto found = units.find(unit);
  if (found != units.end() && number > 0 && std::isfinite(number)) return number * found->second;
  std::string names;
  for (const auto& [name, factor] : units) names += (names.empty() ? "" : ", ") + name;
  throw WrongInput(option + " '" + text + "' must be a number above 0 with one of the units " + names + ": " + example);
}

double bandwidth_of(const std::string& option, const std::string& text) {
  static const std::map<std::string, double> units = {{"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"MB", 1e6}, {"GB", 1e9}};
  return quantity_of(option, text, units, "10Gbit");
}

TeamMachine machine_of(const TeamArguments& arguments) {
  static const std::map<std::string, double> times = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}};
  std::optional<double> meeting, bandwidth;
  std::optional<std::size_t> cache;
  if (!arguments.meeting.empty()) meeting = quantity_of("--meeting", arguments.meeting, times, "2us");
  if (!arguments.bandwidth.empty()) bandwidth = bandwidth_of("--memory-bandwidth", arguments.bandwidth);
  if (!arguments.cache.empty() && !(cache = bytes_in(arguments.cache)))
    throw WrongInput("--cache must be a size such as 32MiB; the units are " + std::string(byte_units));
  TeamMachine machine = team_machine(arguments.threads);
  machine.meeting = meeting.value_or(machine.meeting);
  machine.bandwidth = bandwidth.value_or(machine.bandwidth);
  machine.cache = cache.value_or(machine.cache);
  return machine;
}

nlohmann::ordered_json prediction_json(const TeamPrediction& prediction, bool by_module) {
  const TeamMachine& machine = prediction.machine;
  nlohmann::ordered_json json = {{"threads", machine.threads},
                                 {"ms", 1e3 * prediction.seconds},
                                 {"one_thread_ms", 1e3 * prediction.one},
                                 {"speed_up", prediction.speed_up()},
                                 {"efficiency", prediction.efficiency()},
                                 {"meeting_us", 1e6 * machine.meeting},
                                 {"waking_us", 1e6 * machine.waking},
                                 {"rising_us", 1e6 * machine.rising},
                                 {"memory_gbytes_per_s", machine.bandwidth / 1e9},
                                 {"cache_bytes", machine.cache}};
  const auto each = static_cast<double>(prediction.repetitions);
  for (const TeamWork& work : prediction.works)
    json["rows"].push_back({{by_module ? "site" : "op", work.op.empty() ? work.module : work.op},
                            {"ms", 1e3 * work.seconds},
                            {"one_thread_ms", 1e3 * work.work},
                            {"lost_ms", 1e3 * work.lost(machine.threads)},
                            {"cause", work.cause(machine.threads)},
                            {"serial_ms", 1e3 * work.serial},
                            {"few_pieces_ms", 1e3 * work.few},
                            {"uneven_pieces_ms", 1e3 * work.uneven},
                            {"meetings_ms", 1e3 * work.meetings},
                            {"memory_ms", 1e3 * work.memory},
                            {"traffic_bytes", work.traffic},
                            {"calls", static_cast<double>(work.calls) / each},
                            {"loops", static_cast<double>(work.loops) / each},
                            {"pieces", static_cast<double>(work.pieces) / each}});
  return json;
}

}  // namespace xtape::cli
