/// xtape classify: labels lines of the standard input with the model of a run on texts and labels.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "lines.hpp"
#include "run_options.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

constexpr std::size_t texts_at_once = 64;
constexpr std::int64_t length_unit = 16;  // lengths are padded to multiples of this, so that few players are planned

struct ClassifyArguments {
  std::string run;
  std::string checkpoint = "last";
  std::int64_t max_line = 0;
};

/// The name of the input for texts.
std::string text_input(const Run& run, const std::string& name) {
  std::vector<std::string> texts;
  for (const Column& column : run.recipe().data.columns)
    if (column.kind == Column::Kind::text && !column.name.empty()) texts.push_back(column.name);
  if (texts.size() != 1 || run.labels().empty())
    throw WrongInput(name + " is not a run on a table with one text and one label per row");
  return texts[0];
}

/// Prints a line for each text: its most likely label and the probability of the label.
void classify(Run& run, const std::string& input, const std::vector<Tokens>& texts) {
  const Array tokens = token_array(texts, std::max(0, run.tokenizer().pad()), length_unit);
  const Store results = run.model().play("logits", {{input, tokens}});
  const Array& logits = results[0].value;
  const auto classes = static_cast<std::int64_t>(run.labels().size());
  if (logits.shape() != Shape{static_cast<std::int64_t>(texts.size()), classes} || logits.dtype() != Dtype::float32)
    throw WrongInput("the function 'logits' returns " + to_string(logits.shape()) + " for " +
                     std::to_string(texts.size()) + " texts and " + std::to_string(classes) + " labels");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const float* row = logits.as<float>() + static_cast<std::int64_t>(i) * classes;
    const float* best = std::max_element(row, row + classes);
    double sum = 0;
    for (const float* each = row; each < row + classes; ++each) sum += std::exp(static_cast<double>(*each - *best));
    std::cout << run.labels()[best - row] << '\t' << 1 / sum << '\n';
  }
}

void classify_lines(const ClassifyArguments& arguments) {
  Run run = as_wrong_input([&] { return Run::open(arguments.run, {}, CheckpointChoice::parse(arguments.checkpoint)); });
  const std::string input = text_input(run, arguments.run);
  catch_interrupt();
  std::cout.precision(4);
  InputLines lines(arguments.max_line);
  std::int64_t number = 0;
  for (std::vector<std::string> read; !(read = lines.next(texts_at_once)).empty();) {
    std::vector<Tokens> texts;
    for (const std::string& line : read) {
      ++number;
      try {
        texts.push_back(framed(run.tokenizer(), line));
      } catch (const Error& error) {
        throw WrongInput("line " + std::to_string(number) + ": " + error.what());
      }
    }
    classify(run, input, texts);
    std::cout << std::flush;
    if (interrupted()) throw Interrupted();
  }
}

}  // namespace

void add_classify(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "classify", "Label the lines of the standard input with a run's model: label<TAB>probability");
  const auto arguments = std::make_shared<ClassifyArguments>();
  command->add_option("RUN", arguments->run, "A run directory")->required();
  add_checkpoint(*command, arguments->checkpoint);
  add_max_line(*command, arguments->max_line);
  command->callback([arguments] { classify_lines(*arguments); });
}

}  // namespace xtape::cli
