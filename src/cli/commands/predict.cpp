/// xtape predict: what the model of a run predicts for the rows of a table, for arrays or for images.
#include <algorithm>
#include <memory>

#include "batch_shards.hpp"
#include "commands.hpp"
#include "lines.hpp"
#include "predictions.hpp"
#include "run_options.hpp"

namespace xtape::cli {
namespace {

struct PredictArguments {
  std::string run;
  std::string checkpoint = "last";
  std::int64_t max_line = 0;
  std::vector<std::string> files;
};

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t") == std::string::npos;
}

/// Reads lines in parts. For arrays each part begins with the header.
void predict_lines(const train::RowPredictor& predictor, const Recipe::Data& data, InputLines& lines,
                   const std::string& file, PredictionPrinter& printer) {
  const bool header = data.has_arrays() ? data.csv.header : data.table.skip_lines > 0;
  std::vector<std::string> first;
  std::size_t before = 0;  // lines between the first one and those that are read next
  if (header) {
    first = lines.next(1);
    while (!first.empty() && data.has_arrays() && is_blank(first[0])) first = lines.next(1);
    if (first.empty()) throw WrongInput(file + " has no lines");
  }
  if (!data.has_arrays()) before = first.size(), first.clear();
  for (std::vector<std::string> read; !(read = lines.next(rows_at_once)).empty(); before += read.size()) {
    std::vector<std::string> part = first;
    part.insert(part.end(), read.begin(), read.end());
    if (data.has_arrays() && std::all_of(read.begin(), read.end(), is_blank)) continue;
    printer.print(as_wrong_input([&] { return predictor.rows(file, part, before); }));
  }
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

void predict(const PredictArguments& arguments) {
  Run run = as_wrong_input([&] { return Run::open(arguments.run, {}, CheckpointChoice::parse(arguments.checkpoint)); });
  catch_interrupt();
  const train::RowPredictor predictor = as_wrong_input([&] { return train::RowPredictor(run); });
  PredictionPrinter printer(predictor, true);
  const Recipe::Data& data = run.recipe().data;
  if (data.has_images()) return predict_images(run, arguments.files, printer);
  if (arguments.files.size() > 1) throw WrongInput(arguments.run + " is not a run on images: give one file");
  const std::string file = arguments.files.empty() ? "standard input" : arguments.files[0];
  if (data.has_arrays() && (file.ends_with(".npz") || file.ends_with(".safetensors")))
    return predict_arrays(predictor, file, printer);
  if (data.has_arrays() && data.inputs.empty())
    throw WrongInput(arguments.run + " is a run on arrays without names of columns: give a file of arrays");
  if (arguments.files.empty()) {
    InputLines lines(arguments.max_line);
    return predict_lines(predictor, data, lines, file, printer);
  }
  InputLines lines(file, arguments.max_line);
  predict_lines(predictor, data, lines, file, printer);
}

}  // namespace

void add_predict(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "predict",
      "Predict for the rows of a table, or images, with a run's model: a line of numbers or labels for each");
  const auto arguments = std::make_shared<PredictArguments>();
  command->add_option("RUN", arguments->run, "A run directory")->required();
  command->add_option("FILE", arguments->files,
                      "A table with the columns of the training data, which may lack the targets (default: the "
                      "standard input); a file of arrays; for a run on images: PNG or PNM files");
  add_checkpoint(*command, arguments->checkpoint);
  add_max_line(*command, arguments->max_line);
  command->callback([arguments] { predict(*arguments); });
}

}  // namespace xtape::cli
