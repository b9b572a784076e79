/// xtape plot: draws metrics of runs as curves over the updates.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/arrays/lengths.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "cli/paths.hpp"
#include "cli/pictures.hpp"
#include "train/run/metrics.hpp"

namespace xtape::cli {
namespace {

struct PlotArguments {
  std::vector<std::string> runs;
  std::string out;
  std::vector<std::string> metrics;  // empty: the loss, or several losses
  bool log = false;
  bool statistics = false;
};

struct Point {
  std::int64_t step;
  double value;
};
using Points = std::vector<Point>;

/// The curves of a metric of a run, which has this name in the picture.
struct Curves {
  std::string run, metric;
  Points updates = {}, evaluations = {};
  std::optional<Point> best = {};  // the evaluation of `--checkpoint best`
};

constexpr std::size_t most_points = 1000;  // per curve; more points would not be visible, and would make the file large

/// Returns the points of the lines that have `key`, in the order of the file.
Points points_of(const std::vector<train::Measured>& lines, const std::string& key) {
  Points points;
  for (const train::Measured& line : lines)
    if (const double* value = line.find(key)) points.push_back({line.step, *value});
  return points;
}

/// Returns a moving average over 1 % of all points on either side. Near the beginning, the window is symmetric and
/// smaller, so that the average of a steeply falling curve does not start too low.
Points smoothed(const Points& points) {
  Points means;
  std::vector<double> sums = {0};
  for (const Point& point : points) sums.push_back(sums.back() + point.value);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t reach = std::min(points.size() / 100, i);
    const std::size_t first = i - reach, end = std::min(i + reach + 1, points.size());
    means.push_back({points[i].step, (sums[end] - sums[first]) / static_cast<double>(end - first)});
  }
  return means;
}

Points thinned(const Points& points) {
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.value);
  Points few;
  for (const std::size_t i : train::extremes_of(values, most_points)) few.push_back(points[i]);
  return few;
}

[[noreturn]] void refuse_metric(const std::string& run, const std::string& metric,
                                const std::vector<train::Measured>& lines) {
  std::vector<std::string> keys;
  for (const train::Measured& line : lines)
    for (const auto& [key, value] : line.numbers)
      if (!contains(keys, key)) keys.push_back(key);
  throw WrongInput(run + " has no metric '" + metric + "'" + did_you_mean(metric, keys) + "; it has " + joined(keys));
}

/// Returns the lines of the run's metrics.
std::vector<train::Measured> lines_of(const std::string& run) {
  const std::filesystem::path file = std::filesystem::path(run) / "metrics.jsonl";
  if (!path_exists(file.string()))
    throw WrongInput(run + (path_exists(run + "/recipe.json") ? " has no metrics: it has not been trained yet"
                                                              : " is not a run: it has no metrics.jsonl"));
  std::vector<train::Measured> lines = train::read_metrics(file.string());
  if (lines.empty()) throw WrongInput(run + " has no metrics: no update has been recorded");
  return lines;
}

/// Whether the key of an update is not one of a loss.
bool is_no_loss(const std::string& key) {
  return is_one_of("learning_rate gradient_norm tokens tokens_per_s seconds", key);
}

/// Returns the losses that the updates of a run have: "loss", or several by their names.
std::vector<std::string> losses_of(const std::vector<train::Measured>& lines) {
  std::vector<std::string> losses;
  for (const train::Measured& line : lines)
    for (const auto& [key, value] : line.numbers)
      if (line.find("learning_rate") != nullptr && !is_no_loss(key) && !contains(losses, key)) losses.push_back(key);
  if (losses.empty()) losses.emplace_back("loss");
  return losses;
}

Curves curves_of(const std::string& run, const std::string& metric, const std::vector<train::Measured>& lines,
                 bool log) {
  Curves curves{run, metric};
  const train::BestEvaluation best = train::best_evaluation(run, lines);
  for (const train::Measured& line : lines) {
    // Losses have one key for updates and another for evaluations.
    const bool evaluation = line.find("validation_loss") != nullptr || line.find("perplexity") != nullptr;
    const double* value = evaluation ? line.find("validation_" + metric) : nullptr;
    if (value == nullptr) value = line.find(metric);
    if (value == nullptr || (log && *value <= 0)) continue;
    (evaluation ? curves.evaluations : curves.updates).push_back({line.step, *value});
    if (&line == best.line) curves.best = curves.evaluations.back();
  }
  if (curves.updates.empty() && curves.evaluations.empty()) {
    if (log && !points_of(lines, metric).empty())
      throw WrongInput("--log needs values above 0, but '" + metric + "' in " + run + " has none");
    refuse_metric(run, metric, lines);
  }
  return curves;
}

/// Adds the curves of a metric of a run to the picture. `name` is that of the curves in the legend: the run if there
/// are several runs, and the metric if there are several.
void add(svg::Chart& chart, const Curves& curves, const std::string& name, std::size_t colour) {
  const auto add = [&](const Points& points, svg::Style style, const std::string& what) {
    svg::Curve& curve = chart.curves.emplace_back();
    for (const Point& point : thinned(points)) curve.points.push_back({static_cast<double>(point.step), point.value});
    curve.style = style;
    curve.colour = colour;
    curve.name = joined(std::vector{name, what}, {}, name.empty() || what.empty() ? "" : ", ");
  };
  const bool validates = !curves.updates.empty() && !is_no_loss(curves.metric);  // updates have losses, too
  const std::string training = validates ? "training" : name.empty() ? curves.metric : "";
  // The learning rate has no noise. Other metrics vary between updates and are smoothed.
  if (curves.metric == "learning_rate") {
    add(curves.updates, svg::Style::solid, training);
  } else if (!curves.updates.empty()) {
    add(curves.updates, svg::Style::faint, "");
    chart.curves.back().name.clear();
    add(smoothed(curves.updates), svg::Style::solid, training);
  }
  if (curves.evaluations.empty()) return;
  add(curves.evaluations, svg::Style::dashed, validates ? "validation" : name.empty() ? curves.metric : "");
  if (!curves.best) return;
  add({*curves.best}, svg::Style::ring,
      "best: " + formatted("%.4g", curves.best->value) + " at update " + std::to_string(curves.best->step));
}

void plot(const PlotArguments& arguments) {
  if (arguments.statistics) {
    if (arguments.runs.size() != 1) throw WrongInput("--statistics draws one run");
    if (arguments.log || !arguments.metrics.empty())
      throw WrongInput("--statistics draws statistics of modules, and takes no --metric and no --log");
    const std::string& run = arguments.runs[0];
    const std::vector<train::Measured> lines = as_wrong_input([&] { return lines_of(run); });
    const std::string picture = drawn(maps_of_statistics(lines, run));
    return write_file(picture_path(arguments.out, "statistics.svg"), picture);
  }
  const std::string preset =
      joined(arguments.metrics.empty() ? std::vector<std::string>{"loss"} : arguments.metrics, {}, "_") + ".svg";
  write_file(picture_path(arguments.out, preset),
             drawn(chart_of_runs(arguments.runs, arguments.metrics, arguments.log)));
}

}  // namespace

svg::Chart chart_of_runs(const std::vector<std::string>& runs, const std::vector<std::string>& metrics, bool log) {
  std::vector<Curves> all;
  as_wrong_input([&] {
    const std::vector<std::string> names = names_of(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::vector<train::Measured> lines = lines_of(runs[i]);
      for (const std::string& metric : metrics.empty() ? losses_of(lines) : metrics) {
        all.push_back(curves_of(runs[i], metric, lines, log));
        all.back().run = names[i];
      }
    }
  });
  svg::Chart chart;
  chart.x = {.title = "update", .low = 0};
  std::vector<std::string> drawn;
  for (const Curves& each : all) {
    if (!contains(drawn, each.metric)) drawn.push_back(each.metric);
    const auto count = [&](const auto& same) { return std::ranges::count_if(all, same); };
    const bool other_runs = count([&](const Curves& other) { return other.run == each.run; }) < std::ssize(all);
    const bool other_metrics =
        count([&](const Curves& other) { return other.metric == each.metric; }) < std::ssize(all);
    add(chart, each,
        joined(std::vector<std::string>{other_runs ? each.run : "", other_metrics ? each.metric : ""}, {},
               other_runs && other_metrics ? " " : ""),
        static_cast<std::size_t>(&each - all.data()));
  }
  chart.y = {.title = joined(drawn), .log = log};
  std::ranges::replace(chart.y.title, '_', ' ');
  return chart;
}

void add_plot(CLI::App& program) {
  const auto [command, arguments] =
      add_command<PlotArguments>(program, "plot", "Draw the loss, or another metric, of runs over their updates", plot);
  add_option(command, "RUN", arguments.runs, "Run directories, drawn in one picture", required);
  add_picture(command, arguments.out, "METRIC.svg");
  add_option(
      command, "--metric", arguments.metrics,
      "A metric to draw: loss, one of several losses, learning_rate, gradient_norm, tokens_per_s; of evaluations, "
      "if the run measured it: perplexity, accuracy, bleu, exact_match, and of a further validation set 'loss on "
      "NAME' (default: all losses)",
      one_value);
  command.add_flag("--log", arguments.log, "Use a logarithmic scale");
  command.add_flag("--statistics", arguments.statistics,
                   "Draw the statistics of modules instead, of a run that recorded them");
}

}  // namespace xtape::cli
