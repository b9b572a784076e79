/// xtape shadow: plays a computation together with a shadow in float64, and ranks the calls by the error that they add.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "base/system/durable.hpp"
#include "cli/paths.hpp"
#include "cli/pictures.hpp"
#include "cli/play_of.hpp"
#include "cli/run_options.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/player.hpp"

namespace xtape::cli {
namespace {

struct ShadowArguments {
  PlayArguments play;
  std::string weights;  ///< A dtype. If empty, the weights stay unchanged.
  std::size_t top = 15;
  std::string out;
};

std::string place(const NodeError& error) {
  const std::string step =
      error.time_steps <= 1 ? ""
                            : ", step " + std::to_string(error.time_step) + " of " + std::to_string(error.time_steps);
  return error.node + step + " -> " + error.type + (error.site.empty() ? "" : "  at " + error.site);
}

/// Returns the largest relative error that the rounding of sums and products in one call may add.
double rounding_of(Precision precision) {
  return precision == Precision::bf16 || rounds_to_bytes(precision) ? 2e-2
         : precision == Precision::bf16x3                           ? 1e-4
                                                                    : 1e-5;
}

void print(const NodeError& error) {
  std::printf("%9.2e %9.2e %9.2e %9.2e  %s\n", error.added(), error.made, error.inherited, error.total,
              place(error).c_str());
}

/// Returns whether the exact value of a result is 0. The computed value then consists of rounding error alone. An
/// example is the gradient of a key's bias.
bool is_zero_but_for_rounding(const NodeError& error) {
  constexpr double all = 0.5, rounding = 1e-10;
  return error.output >= 0 && error.total > all && error.rms <= rounding * error.operand_rms;
}

/// Prints the values whose `count` is not 0.
void print_counts(const char* title, const std::vector<NodeError>& errors, std::int64_t NodeError::*count) {
  bool first = true;
  for (const NodeError& error : errors) {
    if (error.*count == 0) continue;
    if (first) std::printf("%s\n", title);
    first = false;
    std::printf("  %lld of %lld in %s\n", static_cast<long long>(error.*count), static_cast<long long>(error.elements),
                place(error).c_str());
  }
}

/// Prints whether the errors consist of rounding alone. `list` is in the order of ranked().
void print_verdict(const std::vector<NodeError>& list, bool overflows, double limit) {
  const auto above = static_cast<std::size_t>(
      std::ranges::count_if(list, [&](const NodeError& error) { return error.added() > limit; }));
  if (above == 0 && !overflows)
    std::printf("all within rounding: no call adds more than %.0e\n", limit);
  else if (above > 0)
    std::printf("not within rounding: %zu call%s more than %.0e, most %s\n", above, above == 1 ? " adds" : "s add",
                limit, place(list[0]).c_str());
  else
    std::printf("not within rounding: numbers overflow\n");
}

void print_table(const std::vector<NodeError>& errors, std::size_t top, std::optional<double> limit) {
  std::vector<NodeError> judged;
  for (const NodeError& error : errors)
    if (!is_zero_but_for_rounding(error)) judged.push_back(error);
  double worst = 0, of_output = 0;
  for (const NodeError& error : judged) {
    if (std::isfinite(error.total)) worst = std::max(worst, error.total);
    if (error.output == 0) of_output = error.total;
  }
  const std::vector<NodeError> list = ranked(judged);
  std::printf("%zu values; the largest relative error is %.2e, that of the first output %.2e\n", errors.size(), worst,
              of_output);
  if (limit) {
    const auto overflows = [](const NodeError& error) { return error.overflows > 0; };
    print_verdict(list, std::ranges::any_of(errors, overflows), *limit);
  }
  std::printf("    added      made inherited     total\n");
  for (std::size_t i = 0; i < std::min(top, list.size()); ++i) print(list[i]);
  if (judged.size() < errors.size()) std::printf("results that are 0 but for rounding:\n");
  for (const NodeError& error : errors)
    if (is_zero_but_for_rounding(error)) std::printf("  %s\n", place(error).c_str());
  print_counts("elements that are finite in only one of both plays:", errors, &NodeError::overflows);
  print_counts("choices that differ in float64:", errors, &NodeError::flipped);
}

/// Returns the shadow of a run's loss with its weights stored as `dtype`.
std::vector<NodeError> shadow_of_weights(const ShadowArguments& arguments) {
  return as_wrong_input([&] {
    if (kind_of(arguments.play.what) != Kind::run)
      throw WrongInput("--weights needs a run: the rounding of initial weights says nothing");
    check_arguments(arguments.play, Kind::run);
    Run run = Run::open(arguments.play.what, parse_settings(arguments.play.set));
    RecordedPlay play = run.trainer().next_play();
    set_options(arguments.play, play);
    play.outputs.resize(1);  // keeps only the loss, because gradients with respect to rounded weights are not computed
    for (const Store::Entry& entry : run.model().weights())
      if (entry.value.dtype() != run.model().dtype())
        throw WrongInput("the run stores '" + entry.name + "' as " + name_of(entry.value.dtype()) +
                         " already: --weights needs weights in " + name_of(run.model().dtype()));
    run.model().store_weights_as(dtype_named(arguments.weights));
    Tape tape;
    Store rounded;
    for (const auto& [name, weight] : run.model().weights(tape))
      if (run.model().weights().at(name).dtype() != weight.dtype()) rounded.add(name, evaluate(weight));
    return shadow(play, rounded);
  });
}

void run(const ShadowArguments& arguments) {
  check_out(arguments.out, {arguments.play.what, arguments.play.in});
  std::vector<NodeError> errors;
  std::optional<double> limit;  // empty for rounded weights, whose error exceeds rounding in the ops
  if (arguments.weights.empty()) {
    const RecordedPlay play = play_of(arguments.play);
    errors = shadow(play);
    limit = rounding_of(play.options.precision);
  } else {
    errors = shadow_of_weights(arguments);
  }
  print_table(errors, arguments.top, limit);
  if (!arguments.out.empty()) write_file(arguments.out, drawn(chart_of_errors(errors)));
}

/// Returns the names of the calls that add the largest errors, at their places in the picture. No two names overlap.
std::vector<svg::Label> names_of_worst(const std::vector<NodeError>& errors, const svg::Curve& drawn) {
  constexpr std::size_t most = 12;
  const double apart = static_cast<double>(errors.size()) / 50;  // height of a line of text, in units of the x axis
  std::vector<svg::Point> ranking = drawn.points;
  const auto error = [&](const svg::Point& point) -> const NodeError& {
    return errors[static_cast<std::size_t>(point.x)];
  };
  std::ranges::stable_sort(
      ranking, [&](const svg::Point& a, const svg::Point& b) { return error(a).added() > error(b).added(); });
  std::vector<svg::Label> names;
  for (const svg::Point& point : ranking) {
    const auto is_near = [&](const svg::Label& other) { return std::abs(other.at.x - point.x) < apart; };
    if (names.size() == most || error(point).added() <= 0) break;
    if (std::ranges::any_of(names, is_near)) continue;
    const std::string& module = error(point).module;
    names.push_back({point, error(point).node + (module.empty() ? "" : " (" + module + ")")});
  }
  return names;
}

}  // namespace

svg::Chart chart_of_errors(const std::vector<NodeError>& errors) {
  svg::Chart chart;
  chart.x = {.title = "value, in the order of playing", .low = -1, .high = static_cast<double>(errors.size())};
  chart.y = {.title = "relative error", .log = true};
  chart.width = 820, chart.height = 420;
  svg::Curve added{{}, svg::Style::stems, 1, "added by the node"}, total{{}, svg::Style::dots, 0, "of the value"};
  double least = HUGE_VAL, worst = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!(errors[i].total > 0) || !std::isfinite(errors[i].total)) continue;
    least = std::min(least, errors[i].total);
    worst = std::max(worst, errors[i].total);
    total.points.push_back({static_cast<double>(i), errors[i].total});
    added.points.push_back({static_cast<double>(i), errors[i].added()});
  }
  if (worst > 0) {  // the axis covers the errors, and has space above for the names of the worst calls
    chart.y.low = least / 2;
    chart.y.high = worst * kernels().numbers.pow(worst / least, 0.7) * 4;
  }
  chart.labels = names_of_worst(errors, total);
  chart.curves = {added, total};
  return chart;
}

void add_shadow(CLI::App& program) {
  const auto [command, arguments] = add_command<ShadowArguments>(
      program, "shadow", "Compare a play with float64, and rank the calls by the error that they add", run);
  add_play(command, arguments.play);
  add_option(command, "--weights", arguments.weights,
             "Of a run: store the weights of products as this dtype, and judge the loss")
      ->check(CLI::IsMember(storage_names()));
  add_option(command, "--top", arguments.top, "The number of calls to print", shown | positive);
  add_picture(command, arguments.out, "", "Draw the errors of all values to this file");
}

}  // namespace xtape::cli
