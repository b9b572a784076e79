/// xtape profile: measures the time of a recipe's updates, or of plays of a tape, by op or by module.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "cli/as_if_threads.hpp"
#include "cli/play_of.hpp"
#include "cli/run_options.hpp"
#include "train/trainer/shard_plays.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct ProfileArguments {
  PlayArguments play;
  std::int64_t steps = 5;
  bool sites = false;
  bool json = false;
  std::string trace;
  int ranks = 0;
  std::string bandwidth = "10Gbit";
  double latency = 0.05;  // ms
  TeamArguments team;
};

void print_prediction(const UpdatePrediction& expected, const ProfileArguments& arguments) {
  std::printf(
      "expected on %d hosts with %s and %g ms: %.3f ms per update, %.2f times as fast as one\n"
      "  forward and backward %.3f ms, sending %.3f ms, of which %.3f ms afterwards, update %.3f ms,\n"
      "  all-gather %.3f ms, latencies %.3f ms\n",
      arguments.ranks, arguments.bandwidth.c_str(), arguments.latency, 1e3 * expected.seconds, expected.speed_up,
      1e3 * expected.plays, 1e3 * expected.reduce_scatter, 1e3 * expected.after_plays, 1e3 * expected.update,
      1e3 * expected.all_gather, 1e3 * expected.latencies);
}

nlohmann::ordered_json json_of(const UpdatePrediction& expected, int ranks) {
  return {{"ranks", ranks},
          {"ms", 1e3 * expected.seconds},
          {"speed_up", expected.speed_up},
          {"plays_ms", 1e3 * expected.plays},
          {"reduce_scatter_ms", 1e3 * expected.reduce_scatter},
          {"after_plays_ms", 1e3 * expected.after_plays},
          {"update_ms", 1e3 * expected.update},
          {"all_gather_ms", 1e3 * expected.all_gather},
          {"latencies_ms", 1e3 * expected.latencies}};
}

/// Totals of the steps of one op or one module, or of work outside the player.
struct Row {
  std::string name;
  double seconds = 0;
  std::int64_t calls = 0;
  double flops = 0;
  double bytes = 0;
};

/// Returns the rows of all steps, the slowest first.
std::vector<Row> rows_of(const TrainingProfile& profile, bool sites) {
  std::map<std::string, Row> by_name;
  for (const TrainingProfile::Step& step : profile.steps) {
    const std::string name = !sites ? step.op : step.module.empty() ? "(no module)" : step.module;
    Row& row = by_name[name];
    row.name = name;
    row.seconds += step.seconds;
    row.calls += step.calls;
    row.flops += step.flops;
    row.bytes += step.bytes;
  }
  std::vector<Row> rows;
  for (const auto& [name, row] : by_name) rows.push_back(row);
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

std::vector<Row> rows_outside(const TrainingProfile& profile) {
  double rest = profile.seconds - profile.optimizer_seconds - profile.batch_seconds;
  for (const TrainingProfile::Step& step : profile.steps) rest -= step.seconds;
  return {{"(optimizer)", profile.optimizer_seconds}, {"(batches)", profile.batch_seconds}, {"(rest)", rest}};
}

/// Returns `amount` per second in units of 10^9, or 0 if `seconds` is 0.
double rate(double amount, double seconds) {
  return seconds > 0 ? amount / seconds / 1e9 : 0;
}

/// Prints a table of the rows. `unit` is the measured unit: "update" or "play".
void print_table(const TrainingProfile& profile, const std::vector<Row>& rows, const char* unit) {
  const auto updates = static_cast<double>(profile.updates);
  const auto number = [](double value, int decimals) { return formatted("%.*f", decimals, value); };
  const auto cell = [](const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::cout << number(1e3 * profile.seconds / updates, 3) << " ms per " << unit << ", the mean of " << profile.updates
            << '\n'
            << "        ms   share    calls  GFLOP/s    GB/s\n";
  for (const Row& row : rows)
    std::cout << cell(number(1e3 * row.seconds / updates, 3), 10)
              << cell(number(100 * row.seconds / profile.seconds, 1), 6) << " %"
              << cell(row.calls > 0 ? number(static_cast<double>(row.calls) / updates, row.calls % profile.updates != 0)
                                    : "",
                      9)
              << cell(row.flops > 0 ? number(rate(row.flops, row.seconds), 1) : "", 9)
              << cell(row.bytes > 0 ? number(rate(row.bytes, row.seconds), 1) : "", 8) << "  " << row.name << '\n';
}

/// Prints how often each rule was applied, and each near miss with its reason.
void print_rules(const TrainingProfile& profile) {
  std::map<std::string, std::int64_t> applied;
  for (const Plan::Fusion& fusion : profile.fusions)
    if (fusion.miss.empty()) ++applied[fusion.rule];
  for (const auto& [rule, count] : applied) std::cout << "rule " << rule << ": " << count << '\n';
  for (const Plan::Fusion& fusion : profile.fusions)
    if (!fusion.miss.empty())
      std::cout << "no rule " << fusion.rule << " at " << fusion.site << ": " << fusion.miss << '\n';
}

void print_json(const TrainingProfile& profile, const std::vector<Row>& rows, bool sites,
                const nlohmann::ordered_json& prediction, const char* unit) {
  const auto updates = static_cast<double>(profile.updates);
  nlohmann::ordered_json json = {{std::string(unit) + "s", profile.updates}, {"ms", 1e3 * profile.seconds / updates}};
  for (const Row& row : rows)
    json["rows"].push_back({{sites ? "site" : "op", row.name},
                            {"ms", 1e3 * row.seconds / updates},
                            {"share", row.seconds / profile.seconds},
                            {"calls", static_cast<double>(row.calls) / updates},
                            {"flops", row.flops / updates},
                            {"bytes", row.bytes / updates},
                            {"gflops", rate(row.flops, row.seconds)},
                            {"gbytes_per_s", rate(row.bytes, row.seconds)}});
  json["rules"] = nlohmann::ordered_json::array();
  for (const Plan::Fusion& fusion : profile.fusions) {
    json["rules"].push_back({{"rule", fusion.rule}, {"site", fusion.site}, {"applied", fusion.miss.empty()}});
    if (!fusion.miss.empty()) json["rules"].back()["miss"] = fusion.miss;
  }
  if (!prediction.is_null()) json["expected"] = prediction;
  // A file's name need not be UTF-8.
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void write_trace(const Trace& trace, const std::string& path) {
  std::ostringstream json;
  trace.write(json);
  write_file(path, json.str());
  if (trace.dropped() > 0)
    std::cerr << "the trace is full: it lacks " << trace.dropped()
              << " events of the last updates; use fewer --steps\n";
}

void print(const TrainingProfile& found, const std::vector<Row>& rows, const ProfileArguments& arguments,
           const char* unit, const nlohmann::ordered_json& prediction = {}) {
  if (arguments.json) return print_json(found, rows, arguments.sites, prediction, unit);
  print_table(found, rows, unit);
  print_rules(found);
}

Recipe recipe_of(const PlayArguments& play) {
  check_arguments(play, Kind::recipe);
  return as_wrong_input([&] {
    std::vector<Setting> settings = parse_settings(play.set);
    if (play.threads > 0) settings.push_back({"threads", std::to_string(play.threads)});
    if (!play.precision.empty()) settings.push_back({"precision", play.precision});
    if (!play.bits.empty()) settings.push_back({"bits", play.bits});
    return Recipe::load(play.what, settings);
  });
}

/// Returns the network of --ranks. Throws WrongInput if there are more ranks than shards.
HostNetwork network_of(const ProfileArguments& arguments, const Recipe& recipe) {
  const HostNetwork network{std::max(1, arguments.ranks), bandwidth_of("--bandwidth", arguments.bandwidth),
                            arguments.latency / 1e3};
  if (network.ranks > recipe.trainer.shards)
    throw WrongInput(
        std::to_string(network.ranks) +
        " ranks need at least as many shards of a batch: --set batch.shards=" + std::to_string(network.ranks));
  return network;
}

void profile_recipe(const ProfileArguments& arguments, const std::shared_ptr<Trace>& trace) {
  const Recipe recipe = recipe_of(arguments.play);
  const HostNetwork network = network_of(arguments, recipe);
  const TrainingProfile found = profile(recipe, arguments.steps, trace);
  const UpdatePrediction expected = predict_update(found, network);
  std::vector<Row> rows = rows_of(found, arguments.sites);
  for (const Row& row : rows_outside(found)) rows.push_back(row);
  print(found, rows, arguments, "update",
        arguments.ranks > 0 ? json_of(expected, arguments.ranks) : nlohmann::ordered_json());
  if (arguments.json || arguments.ranks == 0) return;
  std::cout << std::flush;
  print_prediction(expected, arguments);
}

/// Measures plays of a tape. First plays the tape equally often as a warm-up.
void profile_play(const ProfileArguments& arguments, const std::shared_ptr<Trace>& trace) {
  RecordedPlay play = play_of(arguments.play);
  play.options.profile = true;
  play.options.trace = trace;
  Player player(play.tape, play.outputs, play.options);
  const std::vector<Feed> feeds = feeds_of(play);
  for (std::int64_t i = 0; i < arguments.steps; ++i) player.play(feeds, play.step);
  player.forget_seconds();
  TrainingProfile found;
  found.updates = arguments.steps;
  if (trace) trace->set_on(true);
  for (std::int64_t i = 0; i < arguments.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    player.play(feeds, play.step);
    found.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (trace) trace->set_on(false);
  train::add_measured(player, found.steps);
  found.fusions = player.plan().fusions;
  std::vector<Row> rows = rows_of(found, arguments.sites);
  double rest = found.seconds;
  for (const Row& row : rows) rest -= row.seconds;
  rows.push_back({"(rest)", rest});
  print(found, rows, arguments, "play");
}

/// Measures the updates or plays with as many simulated threads as the machine has. `found` gets the profile of
/// updates.
std::unique_ptr<TeamProfile> profiled_as_if(const TeamMachine& machine, const ProfileArguments& arguments, Kind kind,
                                            TrainingProfile& found) {
  PlayArguments of = arguments.play;
  of.threads = machine.threads;
  auto team = std::make_unique<TeamProfile>(machine);
  if (kind == Kind::recipe) {
    found = profile(recipe_of(of), arguments.steps);
    return team;
  }
  const RecordedPlay play = play_of(of);
  Player player(play.tape, play.outputs, play.options);
  const std::vector<Feed> feeds = feeds_of(play);
  for (std::int64_t i = 0; i < 2 * arguments.steps; ++i) {
    if (i == arguments.steps) team->forget();
    player.play(feeds, play.step);
  }
  return team;
}

/// Returns the expected time of an update on several hosts, if `team` is the prediction for one of them.
UpdatePrediction on_hosts(const TeamPrediction& team, TrainingProfile of, const HostNetwork& network) {
  of.updates = 1;
  of.seconds = team.seconds;
  of.optimizer_seconds = 0;
  for (const TeamWork& work : team.works)
    if (work.op == "(optimizer)") of.optimizer_seconds = work.seconds;
  return predict_update(of, network);
}

void predict_threads(const ProfileArguments& arguments, Kind kind) {
  HostNetwork network;
  if (arguments.ranks > 0) network = network_of(arguments, recipe_of(arguments.play));
  const TeamMachine machine = machine_of(arguments.team);  // measured before a team is simulated
  TrainingProfile of_one, of_team;
  const auto one = profiled_as_if(TeamMachine(), arguments, kind, of_one);
  const auto team = profiled_as_if(machine, arguments, kind, of_team);
  const TeamPrediction found = prediction(*one, *team, arguments.steps, arguments.sites);
  nlohmann::ordered_json json = prediction_json(found, arguments.sites);
  if (!arguments.json) std::cout << found << std::flush;
  if (arguments.ranks > 0) {
    const UpdatePrediction expected = on_hosts(found, of_team, network);
    json["expected"] = json_of(expected, arguments.ranks);
    if (!arguments.json) print_prediction(expected, arguments);
  }
  if (arguments.json) std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void run(const ProfileArguments& arguments) {
  const auto trace = arguments.trace.empty() ? nullptr : std::make_shared<Trace>();
  const Kind kind = as_wrong_input([&] { return kind_of(arguments.play.what); });
  if (arguments.ranks > 0 && kind != Kind::recipe) throw WrongInput("--ranks is for recipes: one play has no update");
  if (arguments.team.threads > 0) return predict_threads(arguments, kind);
  kind == Kind::recipe ? profile_recipe(arguments, trace) : profile_play(arguments, trace);
  if (trace) write_trace(*trace, arguments.trace);
}

}  // namespace

void add_profile(CLI::App& program) {
  const auto [command, arguments] = add_command<ProfileArguments>(
      program, "profile", "Measure the time of a recipe's updates, or of plays of a tape, by op", run);
  add_play(command, arguments.play);
  command.get_option("PLAY")->description(
      "A recipe, whose updates are measured; or what xtape explain plays, such as an ONNX file or a saved tape");
  add_option(command, "--steps", arguments.steps, "The number of updates or plays to measure, after as many to warm up",
             shown | positive);
  command.add_flag("--sites", arguments.sites, "Group by modules, or nodes of an ONNX file, instead of ops");
  add_option(command, "--ranks", arguments.ranks, "Predict the time on this many equal hosts, with one rank each",
             positive);
  add_option(command, "--bandwidth", arguments.bandwidth, "Of the network between hosts, in each direction", shown);
  add_option(command, "--latency", arguments.latency, "Of the network between hosts, in milliseconds",
             shown | not_negative);
  command.add_flag("--json", arguments.json, "Print JSON");
  add_option(command, "--trace", arguments.trace,
             "Write when each step ran to this file, for Perfetto or chrome://tracing")
      ->type_name("FILE.json");
  add_team(command, arguments.team);
  for (const char* other : {"--trace", "--threads"})
    command.get_option("--as-if-threads")->excludes(command.get_option(other));
}

}  // namespace xtape::cli
