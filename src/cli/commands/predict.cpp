/// xtape predict: predicts for the rows of a table, for words, arrays or images with the model of a run.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "cli/predictions.hpp"
#include "cli/run_options.hpp"
#include "data/texts/texts.hpp"
#include "train/trainer/carried.hpp"

namespace xtape::cli {
namespace {

using train::Task;

constexpr std::size_t words_at_once = 1024;  // number of lines to read before their sentences are played

struct PredictArguments {
  std::string run;
  std::string checkpoint = "last";
  std::int64_t max_line = 0;
  std::vector<std::string> files;
  std::string mode = "eval";
  std::optional<std::int64_t> samples;
  std::uint64_t seed = 0;
};

constexpr std::int64_t usual_samples = 30;

/// The number of rows to read before they are played. Samples of a row must not depend on the rows read with it.
std::size_t at_once(const train::RowPredictor& predictor) {
  return predictor.is_sampled() ? 1 : rows_at_once;
}

/// Reads rows in parts. For arrays, each part begins with the header.
void predict_rows(const train::RowPredictor& predictor, const Recipe::Data& data, InputLines& lines,
                  const std::string& file, PredictionPrinter& printer) {
  const bool arrays = train::kind_of(data).task == Task::arrays,
             header = arrays ? data.csv.header : data.table.skip_lines > 0;
  const std::size_t heading = arrays && header ? 1 : 0;  // the rows with which a part begins
  std::size_t passed = 0;                                // the lines before the first row
  std::vector<std::string> read = lines.next(header ? 1 : at_once(predictor));
  for (; heading > 0 && !read.empty() && is_blank(read[0]); read = lines.next(1)) ++passed;
  if (read.empty() && header) throw WrongInput(file + " has no lines");
  if (read.empty()) return;
  FieldReader reader = as_wrong_input([&] { return predictor.reader(file, read[0]); });
  if (header && !arrays) {
    ++passed;
    read = lines.next(at_once(predictor));
  }
  reader.skip(passed);
  std::vector<FieldRow> part;
  for (bool checked = heading == 0; !read.empty(); read = lines.next(at_once(predictor))) {
    for (const std::string& line : read)
      if (std::optional<FieldRow> row = reader.add(line)) part.push_back(std::move(*row));
    if (part.size() > heading) {
      printer.print(as_wrong_input([&] { return predictor.rows(file, part); }));
      part.resize(heading);
    } else if (!checked && !part.empty()) {
      as_wrong_input([&] { return predictor.rows(file, part); });  // rejects a wrong header before waiting for rows
      checked = true;
    }
  }
  reader.finish();
}

/// Returns the word of a line of a sentence. The line may lack the other fields.
std::string word_of(const std::string& line, const Recipe::Data& data) {
  const std::vector<std::string> fields = fields_of_word(line, data.table.delimiter, data.table.columns);
  if (fields.size() != 1 && fields.size() != data.table.columns)
    throw Error("a line must be a word, or have " + std::to_string(data.table.columns) + " fields, not " +
                (fields.size() > data.table.columns ? "more" : std::to_string(fields.size())));
  const auto text = std::ranges::find_if(
      data.columns, [](const Column& each) { return !each.name.empty() && each.kind == Column::Kind::text; });
  const std::string& word = fields[fields.size() == 1 ? 0 : static_cast<std::size_t>(text - data.columns.begin())];
  check_word(word);
  return word;
}

/// Prints the words of sentences and their labels, and a blank line after each sentence.
void print_tags(const train::RowPredictor& predictor, const std::vector<std::vector<std::string>>& sentences) {
  const auto tags = as_wrong_input([&] { return predictor.tags(sentences); });
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    for (std::size_t k = 0; k < sentences[i].size(); ++k) std::cout << sentences[i][k] << '\t' << tags[i][k] << '\n';
    std::cout << '\n';
  }
  flush_results();
}

/// Reads words. Plays the sentences that have arrived together.
void predict_tags(const train::RowPredictor& predictor, const Recipe::Data& data, InputLines& lines,
                  const std::string& file) {
  std::vector<std::vector<std::string>> whole;
  std::vector<std::string> sentence;
  std::size_t number = 0;  // number of lines read so far
  const auto end_sentence = [&] {
    if (!sentence.empty()) whole.push_back(std::exchange(sentence, {}));
  };
  const auto print = [&] { print_tags(predictor, std::exchange(whole, {})); };
  for (std::vector<std::string> read; !(read = lines.next(words_at_once)).empty(); print())
    for (const std::string& line : read) {
      ++number;
      try {
        if (ends_sentence(line, data.table.delimiter))
          end_sentence();
        else
          sentence.push_back(word_of(line, data));
      } catch (const Error& error) {
        throw WrongInput(file + ", line " + std::to_string(number) + ": " + error.what());
      }
      if (whole.size() == rows_at_once) print();
    }
  end_sentence();
  print();
}

void predict_arrays(const train::RowPredictor& predictor, const std::string& file, PredictionPrinter& printer) {
  const BatchArrays all = as_wrong_input([&] { return predictor.rows(file); });
  const std::int64_t rows = all.empty() ? 0 : all[0].value.shape()[0];
  for (std::int64_t first = 0; first < rows; first += rows_at_once) {
    BatchArrays part;
    const std::int64_t last = std::min<std::int64_t>(rows, first + rows_at_once);
    for (const auto& [name, array] : all) part.add(name, train::part_of(array, 0, first, last));
    printer.print(part);
  }
}

void predict_from(const PredictArguments& arguments, Run& run, const train::RowPredictor& predictor) {
  PredictionPrinter printer(predictor, true);
  const Recipe::Data& data = run.recipe().data;
  const Task task = train::kind_of(data).task;
  if (task == Task::images) return predict_images(run, arguments.files, printer);
  if (arguments.files.size() > 1) throw WrongInput(arguments.run + " is not a run on images: give one file");
  const std::string file = arguments.files.empty() ? "standard input" : arguments.files[0];
  if (task == Task::arrays && (file.ends_with(".npz") || file.ends_with(".safetensors")))
    return predict_arrays(predictor, file, printer);
  if (task == Task::arrays && data.inputs.empty())
    throw WrongInput(arguments.run + " is a run on arrays without names of columns: give a file of arrays");
  const auto predict_lines = [&](InputLines& lines) {
    if (task == Task::words) return predict_tags(predictor, data, lines, file);
    predict_rows(predictor, data, lines, file, printer);
  };
  if (arguments.files.empty()) {
    InputLines lines(arguments.max_line);
    return predict_lines(lines);
  }
  InputLines lines(file, arguments.max_line);
  predict_lines(lines);
}

void predict(const PredictArguments& arguments) {
  const bool sampled = arguments.mode == "train";
  if (!sampled && arguments.samples) throw WrongInput("--samples needs --mode train: in mode eval, all are equal");
  require_readable(arguments.files);
  Run run = open_run(arguments.run, arguments.checkpoint);
  if (sampled && train::kind_of(run.recipe().data).task == Task::words)
    throw WrongInput("--mode train is for numbers and labels of rows: " + arguments.run + " labels words");
  catch_interrupt();
  const train::PredictSamples samples{sampled ? arguments.samples.value_or(usual_samples) : 0, arguments.seed};
  const train::RowPredictor predictor = as_wrong_input([&] { return train::RowPredictor(run, samples); });
  predict_from(arguments, run, predictor);
  if (sampled && !predictor.varies())
    std::cerr << "note: all samples are equal: nothing random, such as dropout, changes a prediction in mode train\n";
}

}  // namespace

void add_predict(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("predict", "Predict for the rows of a table, for words or images: numbers or labels");
  const auto arguments = std::make_shared<PredictArguments>();
  command->add_option("RUN", arguments->run, "A run directory")->required();
  command->add_option(
      "FILE", arguments->files,
      "A table with the columns of the training data, which may lack the targets (default: the "
      "standard input); for a run on tags: words, with blank lines between sentences; a file of arrays; for "
      "a run on images: PNG or PNM files");
  add_checkpoint(*command, arguments->checkpoint);
  add_max_line(*command, arguments->max_line);
  command
      ->add_option("--mode", arguments->mode,
                   "eval, or train: with dropout, for the mean and the standard deviation of samples")
      ->check(CLI::IsMember({"eval", "train"}))
      ->capture_default_str();
  command
      ->add_option("--samples", arguments->samples,
                   "With --mode train: the number of samples for each row (default: 30)")
      ->check(CLI::Range(std::int64_t{2}, train::most_samples));
  command->add_option("--seed", arguments->seed, "With --mode train: the seed of the samples")->capture_default_str();
  command->callback([arguments] { predict(*arguments); });
}

}  // namespace xtape::cli
