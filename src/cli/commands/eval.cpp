/// xtape eval: evaluates a run's model on its validation split, or any language model on a text.
#include <cmath>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "cli/opened_model.hpp"
#include "cli/run_options.hpp"
#include "data/tokenizers/utf8.hpp"
#include "train/trainer/measures.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

constexpr std::int64_t sampled_batches = 20;  // number of batches in nanoGPT's published losses

struct EvalArguments {
  std::string run;
  std::string checkpoint = "last";
  std::string source;
  std::string target;
  std::string text;
  ReadOptions reading;
  std::int64_t context = 0;
  std::int64_t stride = 0;
  bool test = false;
  std::vector<std::string> set;
  InferenceArguments inference;
  RankArguments ranks;
};

/// Returns the tokens of the text of a file. Errors name the file.
Tokens encoded(const Tokenizer& tokenizer, const std::string& text, const std::string& path) {
  try {
    return tokenizer.encode(text);
  } catch (const Error& error) {
    const std::string not_utf8 = error_not_utf8(path, text);
    throw WrongInput(not_utf8.empty() ? path + ": " + error.what() : not_utf8);
  }
}

/// Evaluates on a text of any length in windows.
void evaluate_on_text(const EvalArguments& arguments) {
  const std::shared_ptr<Communicator> communicator = ranks(arguments.ranks);
  const std::string text = read_text(arguments.text, arguments.reading);
  OpenedModel opened(Use::texts, arguments.run, arguments.checkpoint, arguments.inference, 0, communicator);
  TextWindows windows;
  windows.context = arguments.context > 0 ? arguments.context : opened.context();
  windows.stride = arguments.stride > 0 ? arguments.stride : std::max<std::int64_t>(1, windows.context / 2);
  const TextEvaluation found = as_wrong_input([&] {
    return xtape::evaluate_text(opened.model(), encoded(opened.tokenizer(), text, arguments.text), windows,
                                communicator);
  });
  if (!is_first_rank()) return;
  const double bits = found.loss * static_cast<double>(found.tokens) / std::log(2.0);
  std::cout.precision(6);
  std::cout << "tokens " << found.tokens << "\nloss " << found.loss << "\nperplexity " << std::exp(found.loss)
            << "\nbits_per_byte " << bits / static_cast<double>(text.size()) << '\n';
}

void evaluate(const EvalArguments& arguments) {
  if (!arguments.text.empty()) {
    evaluate_on_text(arguments);
    return;
  }
  std::vector<std::string> sources, targets;
  if (!arguments.source.empty()) {
    sources = read_utf8_lines(arguments.source, arguments.reading);
    targets = read_utf8_lines(arguments.target, arguments.reading);
  }
  Run run = as_wrong_input([&] {
    std::vector<Setting> settings = parse_settings(arguments.set);
    for (const Setting& setting : arguments.inference.settings()) settings.push_back(setting);
    Run opened =
        Run::open(arguments.run, settings, CheckpointChoice::parse(arguments.checkpoint), ranks(arguments.ranks));
    opened.model().store_weights_as(arguments.inference.dtypes());
    if (arguments.test && opened.recipe().data.test.empty())
      throw WrongInput(arguments.run + " has no test split: give its files with --set data.test_" +
                       train::kind_of(opened.recipe().data).files + "=FILE");
    if (arguments.source.empty()) opened.batches();
    return opened;
  });
  const Evaluation evaluation = arguments.source.empty()
                                    ? run.evaluate(arguments.test)
                                    : as_wrong_input([&] { return run.evaluate(sources, targets); });
  if (!is_first_rank()) return;
  std::cout.precision(6);
  std::cout << "step " << evaluation.step << '\n';
  const std::vector<train::Measure> measures = train::measures_of(evaluation);
  for (const train::Measure& each : measures) {
    std::cout << each.key << ' ' << each.value << '\n';
    if (&each == &measures[0]) std::cout << train::kind_of(run.recipe().data).unit << ' ' << evaluation.tokens << '\n';
    if (each.name == "exact_match") std::cout << "questions " << evaluation.questions << '\n';
  }
  if (!run.recipe().data.has_rows() && !arguments.test && evaluation.losses.empty())
    std::cout << "loss_of_" << sampled_batches << "_random_batches "
              << sampled_loss(run.model(), run.batches(), sampled_batches) << '\n';
}

}  // namespace

void add_eval(CLI::App& program) {
  const auto [command, arguments] = add_command<EvalArguments>(
      program, "eval", "Evaluate a run on its whole validation split, or a model on a text", evaluate);
  add_option(command, "RUN", arguments.run, "A run directory; with --text also a Hugging Face model folder", required);
  add_checkpoint(command, arguments.checkpoint);
  auto* source =
      add_option(command, "--source", arguments.source, "Evaluate on this text, one sentence per line, plain or .gz");
  auto* target = add_option(command, "--target", arguments.target, "The translation of --source");
  source->needs(target);
  target->needs(source);
  command.add_flag("--test", arguments.test, "Evaluate on the data's test split instead of the validation split")
      ->excludes(source);
  auto* text = add_option(command, "--text", arguments.text, "Measure the perplexity of this file, in windows");
  text->excludes(source)->excludes(target);
  add_option(command, "--context", arguments.context, "Tokens in a window (default: the model's context length)",
             positive)
      ->needs(text);
  add_option(command, "--stride", arguments.stride, "Tokens from one window to the next (default: half of --context)",
             positive)
      ->needs(text);
  add_max_line(command, arguments.reading.max_line);
  add_inference(command, arguments.inference);
  add_ranks(command, arguments.ranks);
  add_settings(command, arguments.set);
}

}  // namespace xtape::cli
