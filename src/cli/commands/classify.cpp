/// xtape classify: labels lines of the standard input, or images, with the model of a run or of a Hugging Face folder.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "cli/opened_model.hpp"
#include "cli/predictions.hpp"
#include "cli/run_options.hpp"
#include "model/hugging_face/folder.hpp"

namespace xtape::cli {
namespace {

// lengths are padded to multiples of this number, so that few players are planned
constexpr std::int64_t length_unit = 16;

struct ClassifyArguments {
  std::string run;
  std::string checkpoint = "last";
  std::int64_t max_line = 0;
  std::vector<std::string> images;
};

void print_labels(const Array& logits, std::int64_t rows, const std::vector<std::string>& labels) {
  for (const auto& [label, probability] : as_wrong_input([&] { return train::most_likely(logits, rows, labels); }))
    std::cout << label << '\t' << probability << '\n';
  flush_results();
}

/// Labels lines after tokenizing and padding them.
void classify_lines(Model& model, const std::vector<std::string>& labels, const std::string& input,
                    const Tokenizer& tokenizer, std::int32_t padding, const ClassifyArguments& arguments) {
  const Hyper& hyper = model.hyper();
  const std::int64_t most = hyper.has("max_positions") ? hyper.integer("max_positions") : INT64_MAX;
  InputLines lines(arguments.max_line);
  std::int64_t number = 0;
  for (std::vector<std::string> read; !(read = lines.next(rows_at_once)).empty();) {
    std::vector<Tokens> texts;
    for (const std::string& line : read) {
      ++number;
      try {
        texts.push_back(source_of(tokenizer, line));
        if (std::ssize(texts.back()) > most)
          throw Error(std::to_string(texts.back().size()) + " tokens, and the model reads at most " +
                      std::to_string(most));
      } catch (const Error& error) {
        throw WrongInput("line " + std::to_string(number) + ": " + error.what());
      }
    }
    const Array padded = token_array(texts, padding, length_unit);
    const Array rows = padded.shape()[1] > most ? token_array(texts, padding) : Array(padded);
    const Array logits = model.play("logits", {{input, rows}})[0].value;
    print_labels(logits, rows.shape()[0], labels);
  }
}

void classify_folder(const ModelFolder& folder, const ClassifyArguments& arguments) {
  if (arguments.checkpoint != "last")
    throw WrongInput("--checkpoint needs a run: " + arguments.run + " is a model folder");
  Model model = as_wrong_input([&] { return open_folder(folder); });
  const std::vector<std::string> functions = model.functions();
  const bool has_classes = std::ranges::count(functions, "accuracy") == 1 && model.hyper().has("classes");
  const std::string input = has_classes ? model.signature("accuracy").inputs[0].name : "";
  if (input != "tokens" && input != "images")
    throw WrongInput(arguments.run + " has no model that classifies texts or images");
  if (input == "tokens" && !arguments.images.empty())
    throw WrongInput(arguments.run + " has a model that classifies texts: it reads lines");
  if (input == "images" && arguments.images.empty())
    throw WrongInput(arguments.run + " has a model that classifies images: name the files, as in xtape classify " +
                     "FOLDER IMAGE…");
  std::vector<std::string> labels = as_wrong_input([&] { return model::class_names(folder.path); });
  for (std::int64_t i = std::ssize(labels); i < model.hyper().integer("classes"); ++i)
    labels.push_back("LABEL_" + std::to_string(i));  // the names that transformers uses
  if (input == "images") {
    const ImagePreparation preparation =
        as_wrong_input([&] { return read_image_preparation(folder.path, image_shape(model).channels); });
    return for_images(model, arguments.images, preparation, preparation_file, [&](const BatchArrays& rows) {
      print_labels(model.play("logits", rows)[0].value, rows[0].value.shape()[0], labels);
    });
  }
  const auto tokenizer = as_wrong_input([&] { return load_tokenizer(folder.path); });
  const std::int64_t padding = model.hyper().has("padding") ? model.hyper().integer("padding") : 0;
  classify_lines(model, labels, input, *tokenizer, static_cast<std::int32_t>(padding), arguments);
}

void classify_run(const ClassifyArguments& arguments) {
  Run run = open_run(arguments.run, arguments.checkpoint);
  catch_interrupt();
  using train::Task;
  const Task task = train::kind_of(run.recipe().data).task;
  const bool images = task == Task::images;
  if (!images && task != Task::rows)
    throw WrongInput(arguments.run + " is not a run on a table with one text and one label per row" +
                     (task == Task::arrays || task == Task::words ? ": use xtape predict" : ""));
  if (!images && !arguments.images.empty()) throw WrongInput(arguments.run + " is not a run on images: it reads lines");
  const train::RowPredictor predictor = as_wrong_input([&] { return train::RowPredictor(run); });
  PredictionPrinter printer(predictor, false);
  if (images) return predict_images(run, arguments.images, printer);
  InputLines lines(arguments.max_line);
  std::size_t before = 0;
  as_wrong_input([&] { return predictor.text_rows("", {}, 0); });  // rejects other runs before waiting for lines
  for (std::vector<std::string> read; !(read = lines.next(rows_at_once)).empty(); before += read.size())
    printer.print(as_wrong_input([&] { return predictor.text_rows("standard input", read, before); }));
}

void classify_any(const ClassifyArguments& arguments) {
  std::cout.precision(4);
  require_readable(arguments.images);
  const auto folder = as_wrong_input([&] { return model_folder(arguments.run); });
  if (!folder) return classify_run(arguments);
  catch_interrupt();
  classify_folder(*folder, arguments);
}

}  // namespace

void add_classify(CLI::App& program) {
  const auto [command, arguments] = add_command<ClassifyArguments>(
      program, "classify", "Label the lines of the standard input, or images: label<TAB>probability", classify_any);
  add_option(command, "RUN", arguments.run, "A run directory, or a Hugging Face folder", required);
  add_option(command, "IMAGE", arguments.images, "For a model of images: PNG or PNM files");
  add_checkpoint(command, arguments.checkpoint);
  add_max_line(command, arguments.max_line);
}

}  // namespace xtape::cli
