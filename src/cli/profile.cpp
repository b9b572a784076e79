/// xtape profile: measures the time of a recipe's updates by op or by module.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "run_options.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct ProfileArguments {
  std::string recipe;
  std::vector<std::string> set;
  std::int64_t steps = 5;
  std::string threads;
  bool sites = false;
  bool json = false;
};

/// Totals of the steps of one op or one module, or of work outside the player.
struct Row {
  std::string name;
  double seconds = 0;
  std::int64_t calls = 0;
  double flops = 0;
  double bytes = 0;
};

/// The rows of all steps, the slowest first.
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
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

std::vector<Row> rows_outside(const TrainingProfile& profile) {
  double rest = profile.seconds - profile.optimizer_seconds - profile.batch_seconds;
  for (const TrainingProfile::Step& step : profile.steps) rest -= step.seconds;
  return {{"(optimizer)", profile.optimizer_seconds}, {"(batches)", profile.batch_seconds}, {"(rest)", rest}};
}

/// `amount` per second, in units of 10^9; 0 if `seconds` is 0.
double rate(double amount, double seconds) {
  return seconds > 0 ? amount / seconds / 1e9 : 0;
}

void print_table(const TrainingProfile& profile, const std::vector<Row>& rows) {
  const auto updates = static_cast<double>(profile.updates);
  const auto number = [](double value, int decimals) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return std::string(text);
  };
  const auto cell = [](const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::cout << number(1e3 * profile.seconds / updates, 3) << " ms per update, the mean of " << profile.updates << '\n'
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

void print_json(const TrainingProfile& profile, const std::vector<Row>& rows, bool sites) {
  const auto updates = static_cast<double>(profile.updates);
  nlohmann::ordered_json json = {{"updates", profile.updates}, {"ms", 1e3 * profile.seconds / updates}};
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
  std::cout << json.dump(2) << '\n';
}

void profile_recipe(const ProfileArguments& arguments) {
  const Recipe recipe = as_wrong_input([&] {
    std::vector<Setting> settings = parse_settings(arguments.set);
    if (!arguments.threads.empty()) settings.push_back({"threads", arguments.threads});
    return Recipe::load(arguments.recipe, settings);
  });
  const TrainingProfile found = profile(recipe, arguments.steps);
  std::vector<Row> rows = rows_of(found, arguments.sites);
  for (const Row& row : rows_outside(found)) rows.push_back(row);
  if (arguments.json) {
    print_json(found, rows, arguments.sites);
  } else {
    print_table(found, rows);
    print_rules(found);
  }
}

}  // namespace

void add_profile(CLI::App& program) {
  CLI::App* command = program.add_subcommand("profile", "Measure the time of a recipe's updates by op");
  const auto arguments = std::make_shared<ProfileArguments>();
  command->add_option("RECIPE", arguments->recipe, "A recipe file")->required();
  add_settings(*command, arguments->set);
  command->add_option("--steps", arguments->steps, "The number of updates to measure, after as many to warm up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", arguments->threads, "The number of threads (default: all cores)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--sites", arguments->sites, "Group by modules of the definition instead of ops");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { profile_recipe(*arguments); });
}

}  // namespace xtape::cli
