/// xtape train: trains a new run from a recipe, or continues a run.
#include "xtape/train.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/arrays/lengths.hpp"
#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "cli/commands.hpp"
#include "cli/opened_model.hpp"
#include "cli/progress.hpp"
#include "cli/run_options.hpp"
#include "data/tokenizers/utf8.hpp"
#include "ranks/rank_group.hpp"

namespace xtape::cli {
namespace {

struct TrainArguments {
  std::string recipe;
  std::string out;
  std::string from, adapter;
  std::string checkpoint = "last";
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> threads;
  double minutes = 0;
  bool statistics = false;
  std::vector<std::string> watch;
  std::optional<std::int64_t> watch_every;
  bool resume = false;
  RankArguments ranks;
};

std::string default_directory(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", std::localtime(&now));
  return "runs/" + name + "-" + date;
}

bool is_run(const std::string& path) {
  return path_exists(path + "/recipe.json");
}

std::vector<Setting> settings_of(const TrainArguments& arguments) {
  std::vector<Setting> settings = parse_settings(arguments.set);
  if (arguments.seed) settings.push_back({"seed", std::to_string(*arguments.seed)});
  if (!arguments.from.empty()) settings.push_back({"from", arguments.from});
  if (!arguments.adapter.empty()) settings.push_back({"adapter", arguments.adapter});
  if (arguments.statistics) settings.push_back({"statistics_every", "100"});
  if (!arguments.watch.empty()) settings.push_back({"watch", Json(arguments.watch).dump()});
  if (arguments.watch_every) settings.push_back({"watch_every", std::to_string(*arguments.watch_every)});
  if (arguments.threads) settings.push_back({"threads", std::to_string(*arguments.threads)});
  return settings;
}

Run continued(const TrainArguments& arguments) {
  const CheckpointChoice checkpoint = CheckpointChoice::parse(arguments.checkpoint);
  if (is_run(arguments.recipe) && (arguments.out.empty() || arguments.out == arguments.recipe))
    return Run::resume(arguments.recipe, settings_of(arguments), checkpoint, ranks(arguments.ranks));
  if (arguments.out.empty())
    throw WrongInput("--resume needs a run: xtape train RUN --resume, or xtape train RECIPE --out RUN --resume");
  Run run = Run::resume(arguments.out, settings_of(arguments), checkpoint, ranks(arguments.ranks));
  // The run has its own settings, such as the data's directory. Only the names of the recipes are therefore compared.
  const std::string file = find_definition(arguments.recipe, "recipes");
  const std::string name = JsonNode(read_file(file), file, JsonErrors::definition).at("name").text();
  if (name != run.recipe().name)
    throw WrongInput(arguments.out + " is a run of recipe '" + run.recipe().name + "', not of '" + name + "'");
  return run;
}

Run begun(const TrainArguments& arguments) {
  if (is_run(arguments.recipe)) throw WrongInput(arguments.recipe + " is a run: use --resume to continue it");
  const Recipe recipe = Recipe::load(arguments.recipe, settings_of(arguments));
  // All ranks use the name that rank 0 finds.
  const std::string out =
      arguments.out.empty()
          ? ranks::RankGroup(ranks(arguments.ranks)).all_gather(default_directory(recipe.name)).front()
          : arguments.out;
  if (is_first_rank() && path_exists(out))
    throw WrongInput(out + (is_run(out) ? " is a run already: use --resume to continue it, or choose another folder"
                                        : " already exists"));
  Run run = Run::create(recipe, out, ranks(arguments.ranks));
  if (is_first_rank() && !recipe.from.empty()) warn_of_folder({recipe.from, recipe.adapter}, recipe.definition);
  return run;
}

std::string sentence(const Evaluation& evaluation) {
  std::string line;
  const auto add = [&](const char* format, auto... values) { line += formatted(format, values...); };
  if (evaluation.set.empty()) add("step %lld  validation ", static_cast<long long>(evaluation.step));
  add("loss %.4f", evaluation.loss);
  for (const LossReport& each : evaluation.losses) add("  %s %.4f", each.loss.c_str(), each.mean);
  if (evaluation.perplexity) add("  perplexity %.3f", *evaluation.perplexity);
  if (evaluation.accuracy) add("  accuracy %.2f %%", *evaluation.accuracy * 100);
  if (evaluation.bleu) add("  BLEU %.2f", *evaluation.bleu);
  if (evaluation.exact_match)
    add("  exact match %.2f %% of %lld", *evaluation.exact_match * 100, static_cast<long long>(evaluation.questions));
  if (evaluation.epsilon) add("  epsilon %.3f", *evaluation.epsilon);
  for (const Evaluation& set : evaluation.sets) line += "\n  on " + set.set + ": " + sentence(set);
  return line;
}

/// Returns the number of updates of the recipe. Patience may end the training earlier.
std::int64_t steps_of(Run& run) {
  const Trainer::FitOptions& fit = run.recipe().fit;
  if (fit.epochs == 0) return fit.steps;
  const std::int64_t accumulate = run.recipe().trainer.accumulate;
  const std::int64_t steps = ceiling(fit.epochs * run.batches().epoch_batches(), accumulate);
  return fit.steps == 0 ? steps : std::min(steps, fit.steps);
}

/// Returns the word for the received signal in messages.
std::string interruption() {
  return interrupting_signal() == SIGTERM ? "terminated" : interrupting_signal() == SIGHUP ? "hung up" : "interrupted";
}

/// Prints what is trained, and what may be a mistake.
void introduce(Run& run, int ranks) {
  std::int64_t trained = 0;
  for (const Store::Entry& weight : run.trainer().trained()) trained += weight.value.count();
  const std::int64_t parameters = run.model().parameter_count();
  std::cerr << "run " << run.directory() << ": " << parameters << " parameters, "
            << (trained < parameters ? std::to_string(trained) + " of them trained, " : "") << "step "
            << run.trainer().step() << " of " << steps_of(run)
            << (ranks > 1 ? ", " + std::to_string(ranks) + " ranks" : "") << std::endl;
  if (const std::vector<std::string>& labels = run.labels(); !labels.empty())  // a misspelt one shows
    std::cerr << labels.size() << (labels.size() == 1 ? " label: " : " labels: ") << joined_first(labels, 20)
              << std::endl;
  if (const std::vector<std::string> names = run.trainer().without_gradient(); !names.empty())
    std::cerr << "warning: the loss does not depend on " << names.size()
              << (names.size() == 1 ? " weight, which stays" : " weights, which stay")
              << " as initialised: " << joined_first(names, 5) << " (xtape explain says why)" << std::endl;
  const std::int64_t accumulate = run.recipe().trainer.accumulate;
  const std::int64_t epoch = run.batches().epoch_batches();  // 0 for data that is drawn at random
  if (epoch > 0 && accumulate > epoch)
    std::cerr << "warning: an update adds " << accumulate << " micro-batches (batch.accumulate), and an epoch has "
              << epoch << ": an update reads all data several times" << std::endl;
}

void train(const TrainArguments& arguments) {
  ignore_closed_pipes();
  catch_save_request();
  const std::shared_ptr<Communicator> communicator = ranks(arguments.ranks);
  const int rank_count = communicator ? communicator->size() : 1;
  Run run = as_wrong_input([&] {
    Run made = arguments.resume ? continued(arguments) : begun(arguments);
    made.trainer();  // plans the training step, which reports errors of the definition
    return made;
  });
  if (is_first_rank()) introduce(run, rank_count);
  catch_interrupt();
  Progress progress(steps_of(run), rank_count, train::kind_of(run.recipe().data).unit);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto time_is_over = [&] {
    return arguments.minutes > 0 &&
           std::chrono::duration<double>(Clock::now() - start).count() > 60 * arguments.minutes;
  };
  Trainer::Callbacks callbacks;
  std::optional<Evaluation> last;
  callbacks.step = [&](const StepReport& report) {
    if (is_first_rank()) progress.step(report);
  };
  callbacks.part = [&](const UpdatePart& part) {
    if (is_first_rank()) progress.part(part);
  };
  callbacks.evaluation = [&](const Evaluation& evaluation) {
    last = evaluation;
    if (is_first_rank()) progress.note(sentence(evaluation));
  };
  callbacks.watched = [&](std::int64_t step, const std::vector<WatchedValue>& values) {
    for (const WatchedValue& value : values)
      progress.note("update " + std::to_string(step) + "  " + value.name + " " + value.type + ": " +
                    to_string(value.range));
  };
  callbacks.interrupt = interrupted;
  callbacks.warning = [&](const std::string& sentence) { progress.note("warning: " + sentence); };
  callbacks.save = save_requested;
  callbacks.stop = time_is_over;
  bool finished = false;
  try {
    finished = run.train(callbacks);
  } catch (const FileError& error) {  // not an input error: the disk is full or the directory was removed
    throw WorkFailed(error.what());
  }
  const std::string goes_on = " at step " + std::to_string(run.trainer().step()) + "; to continue: xtape train " +
                              run.directory() + " --resume";
  if (!finished && ranks::RankGroup(communicator).any(interrupted())) throw Interrupted(interruption() + goes_on);
  if (!is_first_rank()) return;
  if (!finished) {
    std::cout << run.directory() << ": the time limit was reached" << goes_on << '\n';
    return;
  }
  if (last && run.recipe().fit.patience > 0 && last->step < steps_of(run))
    std::cerr << "ended early (patience " << run.recipe().fit.patience << "): no evaluation after step "
              << run.trainer().best_step() << " was better; --checkpoint best has its weights" << std::endl;
  std::cout << run.directory() << ": "
            << (last ? sentence(*last) : "nothing to do: already at step " + std::to_string(run.trainer().step()))
            << '\n';
}

}  // namespace

void add_train(CLI::App& program) {
  const auto [command, arguments] =
      add_command<TrainArguments>(program, "train", "Train a model from a recipe, or continue a run", train);
  add_option(command, "RECIPE", arguments.recipe,
             "A recipe file, or the name of an installed one; with --resume, a run directory", required);
  add_option(command, "--out", arguments.out, "The run directory (default: runs/NAME-DATE)");
  add_settings(command, arguments.set);
  add_option(command, "--seed", arguments.seed, "The seed of the initial weights, the data order and dropout");
  add_threads(command, arguments.threads);
  add_option(command, "--minutes", arguments.minutes, "Stop after this time, and write a checkpoint", not_negative);
  add_option(command, "--watch", arguments.watch,
             "Print the range of a value of the training step: what a module returns, such as h.0.attn, or what one of "
             "its lines assigns, such as h.0.attn.scores",
             one_value)
      ->check(error_of(check_utf8));  // the name is stored in JSON
  add_option(command, "--watch-every", arguments.watch_every, "The updates between its prints (default: 1)", positive);
  command.add_flag("--statistics", arguments.statistics,
                   "Record statistics of all modules every 100 updates: short for --set statistics_every=100");
  auto* from =
      add_option(command, "--from", arguments.from, "Start from the model of this folder: short for --set from=…");
  auto* adapter = add_option(command, "--adapter", arguments.adapter,
                             "With --from: a folder of low-rank adapters to start with: short for --set adapter=…");
  auto* resume = command.add_flag("--resume", arguments.resume, "Continue the run from a checkpoint")
                     ->excludes(from)
                     ->excludes(adapter);
  add_checkpoint(command, arguments.checkpoint,
                 "With --resume: the checkpoint to continue from: last, best or the number of a step; later ones are "
                 "renamed")
      ->needs(resume);
  add_ranks(command, arguments.ranks);
}

}  // namespace xtape::cli
