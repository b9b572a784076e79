/// xtape export: writes a run's model as a Hugging Face model folder.
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "definition_options.hpp"
#include "durable.hpp"
#include "folder.hpp"
#include "run_options.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct ExportArguments {
  std::string source, folder;
  std::string checkpoint = "last";
  std::string weights;
};

void write(const ExportArguments& arguments) {
  if (path_exists(arguments.folder)) throw WrongInput(arguments.folder + " already exists");
  if (is_hugging_face(arguments.source)) {
    Model model = open_folder(arguments.source);
    if (!arguments.weights.empty()) model.store_weights_as(dtype_named(arguments.weights));
    save_hugging_face(model, arguments.folder, arguments.source);
  } else {
    Run run = Run::open(arguments.source, {}, CheckpointChoice::parse(arguments.checkpoint));
    if (!arguments.weights.empty()) run.model().store_weights_as(dtype_named(arguments.weights));
    run.save_hugging_face(arguments.folder);
  }
  std::cout << arguments.folder << '\n';
}

}  // namespace

void add_export(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "export", "Write a run's model as a folder with config.json and model.safetensors for transformers");
  const auto arguments = std::make_shared<ExportArguments>();
  command
      ->add_option("RUN", arguments->source,
                   "A run directory, or a Hugging Face model folder, whose weights become float32 in one file")
      ->required();
  command->add_option("FOLDER", arguments->folder, "The folder to write")->required();
  add_checkpoint(*command, arguments->checkpoint);
  command
      ->add_option("--weights", arguments->weights,
                   "Store the weights of products as this dtype; int8 is read by xtape only")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
  command->callback([arguments] { as_wrong_input([&] { write(*arguments); }); });
}

}  // namespace xtape::cli
