/// xtape sweep: trains a recipe with every combination of some settings, and compares the runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "cli/commands.hpp"
#include "cli/pictures.hpp"
#include "cli/run_options.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/metrics.hpp"
#include "train/run/run_parts.hpp"

namespace xtape::cli {
namespace {

struct SweepArguments {
  std::string recipe, out, budget;
  std::vector<std::string> grid, set;
  std::int64_t halving = 0, folds = 0;
  std::optional<std::int64_t> threads;
};

constexpr std::size_t most_trials = 10000;
constexpr const char* record_file = "sweep.json";

/// Returns the parts of a text between commas that are in no brackets and no quotes.
std::vector<std::string> values_of(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0 && !quoted)
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

/// Returns all combinations. The last key changes fastest.
std::vector<std::vector<Setting>> combinations(const std::vector<std::string>& grid) {
  std::vector<std::vector<Setting>> all(1);
  for (const std::string& each : grid) {
    const Setting axis = Setting::parse(each);
    std::vector<std::vector<Setting>> longer;
    for (const std::vector<Setting>& before : all)
      for (const std::string& value : values_of(axis.value)) {
        longer.push_back(before);
        longer.back().push_back({axis.key, value});
        if (longer.size() > most_trials)
          throw WrongInput("the grid has more than " + std::to_string(most_trials) + " combinations");
      }
    all = std::move(longer);
  }
  return all;
}

/// Returns the axis of the folds of a cross-validation: "data.fold=1,2,3".
std::string numbers_to(std::int64_t folds) {
  std::string axis = "data.fold=1";
  for (std::int64_t fold = 2; fold <= folds; ++fold) axis += "," + std::to_string(fold);
  return axis;
}

/// Returns two cells of a table: the mean of numbers, and their standard deviation (of a sample, with n - 1).
std::string in_words(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  double mean = 0, squares = 0;
  for (const double each : numbers) mean += each / count;
  for (const double each : numbers) squares += (each - mean) * (each - mean);
  return (numbers.empty() ? " – |" : " " + formatted("%.6g", mean) + " |") +
         (numbers.size() < 2 ? " – |" : " " + formatted("%.2g", std::sqrt(squares / (count - 1))) + " |");
}

/// Returns the seconds of a text such as "90s", "30m", "2h" or "1.5d".
double seconds_of(const std::string& text) {
  std::size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = text.substr(end);
  for (const auto& [name, seconds] : {std::pair("s", 1.0), {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}})
    if (end > 0 && unit == name && number >= 0 && std::isfinite(number)) return number * seconds;
  throw Error("a time must be a number with s, m, h or d, such as 90s or 1.5h, not '" + text + "'");
}

/// One combination of the grid, and the state of its run.
struct Trial {
  std::vector<Setting> settings;
  std::string run;
  std::int64_t step = 0;                // of the last checkpoint
  std::optional<train::Measured> best;  // its best evaluation
  double value = 0;                     // the measure of that
  std::string failure;                  // why the training cannot continue
};

class Sweep {
 public:
  explicit Sweep(const SweepArguments& arguments);
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Setting> settings(const Trial& trial, std::int64_t steps) const;
  void look_at(Trial& trial, std::int64_t until = std::numeric_limits<std::int64_t>::max());
  void train(Trial& trial, std::int64_t steps);
  bool is_over() const { return budget_ > 0 && spent() > budget_; }
  double spent() const { return before_ + std::chrono::duration<double>(Clock::now() - start_).count(); }
  void record() const;
  std::vector<const Trial*> ranked(std::vector<const Trial*> trials) const;
  std::string table();
  std::string means() const;
  void report();

  const SweepArguments& arguments_;
  std::vector<Trial> trials_;
  std::vector<std::string> set_;  // the settings of all runs
  std::int64_t steps_ = 0;        // of a whole training
  std::int64_t folds_ = 0;        // of a cross-validation; 0: none
  train::Measure measure_;
  double budget_ = 0, before_ = 0;  // seconds; those of earlier calls
  Clock::time_point start_ = Clock::now();
};

Sweep::Sweep(const SweepArguments& arguments) : arguments_(arguments), set_(arguments.set) {
  if (!arguments.budget.empty()) budget_ = seconds_of(arguments.budget);
  std::vector<std::string> grid = arguments.grid;
  if (arguments.folds > 0)
    set_.insert(set_.end(), {"data.folds=" + std::to_string(arguments.folds), "data.split=null", "data.held_out=null"});
  std::vector<Setting> first = parse_settings(set_);  // of the first training: a grid may give what the recipe lacks
  if (!grid.empty()) {
    const std::vector<std::vector<Setting>> all = combinations(grid);
    first.insert(first.end(), all[0].begin(), all[0].end());
  }
  folds_ = Recipe::load(arguments.recipe, first).data.folds;
  if (folds_ > 0) grid.push_back(numbers_to(folds_));
  if (grid.empty()) throw WrongInput("a sweep needs --grid, --folds, or a recipe with 'data.folds'");
  if (folds_ > 0 && arguments.halving > 0)
    throw WrongInput("--halving would end the trainings of some folds: it cannot be with folds");
  const std::vector<std::vector<Setting>> all = combinations(grid);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const std::size_t digits = std::to_string(all.size()).size();
    Trial& trial = trials_.emplace_back();
    trial.settings = all[i];
    trial.run = path_in(arguments.out, std::string(digits - number.size(), '0') + number);
  }
  for (const Trial& trial : trials_) {  // all must be right before the first is trained
    const Recipe recipe = Recipe::load(arguments.recipe, settings(trial, 0));
    if (arguments.halving > 0 && (recipe.fit.steps == 0 || recipe.fit.epochs > 0))
      throw WrongInput("--halving needs a recipe with 'steps' and without 'epochs'");
    steps_ = std::max(steps_, recipe.fit.steps);
  }
  const std::string file = path_in(arguments.out, record_file);
  if (path_exists(arguments.out) && !path_exists(file))
    throw WrongInput(arguments.out + " exists, and is not a sweep: it has no " + record_file);
  if (path_exists(file)) {
    const JsonNode json(read_file(file), file, JsonErrors::file);
    const auto same = [&](const char* key, const std::vector<std::string>& given) {
      if (json.at(key).json() != Json(given))
        throw WrongInput(arguments.out + " is a sweep with other values of --" + key +
                         "; continue it with its own, or choose another folder");
    };
    same("grid", arguments.grid);
    same("set", set_);
    before_ = json.at("seconds").number();
  }
  make_folders(arguments.out);
  record();
}

void Sweep::record() const {
  const Json json = {{"recipe", arguments_.recipe},
                     {"grid", arguments_.grid},
                     {"set", set_},
                     {"halving", arguments_.halving},
                     {"seconds", spent()}};
  write_file(path_in(arguments_.out, record_file), json.dump(2) + "\n");
}

/// Returns the settings of a trial that trains until `steps`, or to its end if that is 0.
std::vector<Setting> Sweep::settings(const Trial& trial, std::int64_t steps) const {
  std::vector<Setting> all = parse_settings(set_);
  if (arguments_.threads) all.push_back({"threads", std::to_string(*arguments_.threads)});
  all.insert(all.end(), trial.settings.begin(), trial.settings.end());
  if (steps == 0) return all;
  // The schedule is that of the whole training, so that the first updates are its first updates.
  const Recipe whole = Recipe::load(arguments_.recipe, all);
  if (train::has_end(whole.trainer.schedule))
    all.push_back({"schedule.steps", std::to_string(whole.trainer.schedule.steps)});
  all.push_back({"steps", std::to_string(steps)});
  return all;
}

/// Reads how far the run of a trial is, and its evaluations until an update.
void Sweep::look_at(Trial& trial, std::int64_t until) {
  const std::string file = path_in(trial.run, train::metrics_file);
  const std::vector<std::string> found = path_exists(trial.run)
                                             ? train::checkpoints(path_in(trial.run, train::checkpoints_folder))
                                             : std::vector<std::string>();
  trial.step = found.empty() ? 0 : train::step_of_checkpoint(found.back());
  trial.best.reset();
  if (!path_exists(file)) return;
  const std::vector<train::Measured> lines = train::read_metrics(file);
  const train::BestEvaluation best = train::best_evaluation(trial.run, lines, until);
  measure_ = best.measure;
  if (best.line == nullptr) return;
  trial.best = *best.line;
  trial.value = best.measure.value;
}

void Sweep::train(Trial& trial, std::int64_t steps) {
  if (!trial.failure.empty()) return;
  const std::int64_t until = steps > 0 ? steps : std::numeric_limits<std::int64_t>::max();
  look_at(trial, until);
  if (steps > 0 && trial.step >= steps) return;
  std::string what;
  for (const Setting& setting : trial.settings) what += " " + setting.key + "=" + setting.value;
  const bool is_new = !path_exists(trial.run);
  const std::vector<Setting> all = settings(trial, steps);
  try {
    Run run = as_wrong_input([&] {
      return is_new ? Run::create(Recipe::load(arguments_.recipe, all), trial.run) : Run::resume(trial.run, all);
    });
    Trainer::Callbacks callbacks;
    callbacks.interrupt = interrupted;
    callbacks.stop = [&] { return is_over(); };
    const std::int64_t before = run.trainer().step();
    const bool finished = run.train(callbacks);
    record();
    look_at(trial, until);
    if (!finished && interrupted()) throw Interrupted("interrupted; the same command continues the sweep");
    if (run.trainer().step() == before) return;
    std::cerr << trial.run << what << ": step " << run.trainer().step()
              << (trial.best ? "  " + measure_.key + " " + formatted("%.4f", trial.value) : "") << std::endl;
  } catch (const TrainingError& error) {
    look_at(trial);
    trial.failure = error.what();
    std::cerr << trial.run << what << ": " << trial.failure << std::endl;
  }
}

/// Returns the trials, the best first.
std::vector<const Trial*> Sweep::ranked(std::vector<const Trial*> trials) const {
  std::ranges::stable_sort(trials, [&](const Trial* a, const Trial* b) {
    if (a->best.has_value() != b->best.has_value() || !a->best) return a->best.has_value() && !b->best.has_value();
    return measure_.more_is_better ? a->value > b->value : a->value < b->value;
  });
  return trials;
}

void Sweep::run() {
  std::vector<Trial*> left;
  for (Trial& trial : trials_) left.push_back(&trial);
  // With halving, the last rung is a whole training, and each rung before it a share of the next.
  std::vector<std::int64_t> rungs = {0};
  if (const auto share = static_cast<std::size_t>(arguments_.halving); share > 0) {
    rungs = {steps_};
    for (std::size_t count = left.size(); count > share; count /= share)
      rungs.insert(rungs.begin(), std::max<std::int64_t>(1, rungs.front() / arguments_.halving));
  }
  for (std::size_t rung = 0; rung < rungs.size() && !is_over(); ++rung) {
    for (Trial* trial : left) {
      if (is_over()) break;
      train(*trial, rungs[rung]);
    }
    if (rung + 1 == rungs.size() || is_over()) break;
    const auto share = static_cast<std::size_t>(arguments_.halving);
    std::vector<const Trial*> order = ranked({left.begin(), left.end()});
    order.resize((left.size() + share - 1) / share);
    std::erase_if(left, [&](const Trial* trial) { return !contains(order, trial); });
  }
  report();
}

std::string Sweep::table() {
  for (Trial& trial : trials_) look_at(trial);
  std::vector<const Trial*> all;
  for (const Trial& trial : trials_) all.push_back(&trial);
  std::ostringstream out;
  std::string head = "| run |", line = "|---|";
  for (const Setting& setting : trials_[0].settings) {
    head += " `" + setting.key + "` |";
    line += "---|";
  }
  out << head << " " << measure_.key << " | at step | steps |\n" << line << "---|---|---|\n";
  for (const Trial* trial : ranked(all)) {
    out << "| " << trial->run.substr(trial->run.rfind('/') + 1) << " |";
    for (const Setting& setting : trial->settings) out << " " << setting.value << " |";
    out << (trial->best ? " " + formatted("%.6g", trial->value) + " | " + std::to_string(trial->best->step) : " – | –")
        << " | " << trial->step << (trial->failure.empty() ? "" : ", failed") << " |\n";
  }
  return out.str() + (folds_ > 0 ? "\n" + means() : "");
}

/// Returns the table of a cross-validation: for each combination of the grid, the means of all measures over the folds,
/// and their standard deviations. The folds of a combination follow each other.
std::string Sweep::means() const {
  std::vector<std::string> keys;
  for (const Trial& trial : trials_)
    for (const auto& [key, value] : trial.best ? trial.best->numbers : decltype(train::Measured::numbers)())
      if (key != "tokens" && !contains(keys, key)) keys.push_back(key);
  std::ostringstream out;
  std::string head = "|", line = "|";
  for (std::size_t i = 0; i + 1 < trials_[0].settings.size(); ++i) {
    head += " `" + trials_[0].settings[i].key + "` |";
    line += "---|";
  }
  out << head << " folds |";
  for (const std::string& key : keys) out << " " << key << " | ± |";
  out << '\n' << line << "---|";
  for (std::size_t i = 0; i < 2 * keys.size(); ++i) out << "---|";
  out << '\n';
  const auto folds = static_cast<std::size_t>(folds_);
  for (std::size_t first = 0; first < trials_.size(); first += folds) {
    out << "|";
    const std::span<const Trial> of = std::span(trials_).subspan(first, folds);
    for (std::size_t i = 0; i + 1 < of[0].settings.size(); ++i) out << " " << of[0].settings[i].value << " |";
    out << " " << std::ranges::count_if(of, [](const Trial& each) { return each.best.has_value(); }) << " |";
    for (const std::string& key : keys) {
      std::vector<double> values;
      for (const Trial& each : of)
        if (const double* value = each.best ? each.best->find(key) : nullptr) values.push_back(*value);
      out << in_words(values);
    }
    out << '\n';
  }
  return out.str();
}

void Sweep::report() {
  const std::string lines = table();
  write_file(path_in(arguments_.out, "table.md"), lines);
  std::cout << lines;
  if (is_over()) {
    std::cout << arguments_.out << ": the budget is spent; the same command with a larger --budget continues\n";
    return;
  }
  constexpr std::size_t most_drawn = 8;  // there are no more colours
  std::vector<const Trial*> all;
  for (const Trial& trial : trials_) all.push_back(&trial);
  std::vector<std::string> runs;
  for (const Trial* trial : ranked(all))
    if (trial->best && runs.size() < most_drawn) runs.push_back(trial->run);
  if (runs.empty()) return;
  svg::Chart chart = chart_of_runs(runs, {"validation_loss"}, false);
  if (runs.size() < trials_.size())
    chart.title = "The best " + std::to_string(runs.size()) + " of " + std::to_string(trials_.size()) + " runs";
  write_file(path_in(arguments_.out, "sweep.svg"), drawn(chart));
}

void sweep(const SweepArguments& arguments) {
  catch_interrupt();
  as_wrong_input([&] { return Sweep(arguments); }).run();
}

}  // namespace

void add_sweep(CLI::App& program) {
  const auto [command, arguments] = add_command<SweepArguments>(
      program, "sweep",
      "Train a recipe with all combinations of some settings, or on all folds of its data, and compare", sweep);
  add_option(command, "RECIPE", arguments.recipe, "A recipe file, or the name of an installed one", required);
  add_option(command, "--grid", arguments.grid,
             "A key of the recipe and its values: optimizer.weight_decay=0,0.1; one --grid for each key", one_value);
  add_option(command, "--folds", arguments.folds,
             "Cross-validation: train one run for each of K parts of the rows, on the others; data.folds=K in place of "
             "data.split or data.held_out")
      ->check(CLI::Range(2, 1000));
  add_option(command, "--out", arguments.out,
             "The folder of the sweep. The same command continues a sweep that was interrupted", required);
  add_settings(command, arguments.set);
  add_option(command, "--halving", arguments.halving,
             "Train all for a share of the updates, then the best 1/N for N times as many, up to the whole training "
             "(successive halving)")
      ->check(CLI::Range(2, 1000));
  add_option(command, "--budget", arguments.budget, "Stop after this time in all: 90s, 30m, 2h or 1d")
      ->check(error_of(seconds_of));
  add_threads(command, arguments.threads);
}

}  // namespace xtape::cli
