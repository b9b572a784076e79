/// xtape export: writes a run's model as a Hugging Face model folder.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "commands.hpp"
#include "definition_options.hpp"
#include "durable.hpp"
#include "opened_model.hpp"
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
  std::optional<Dtype> weights;
  if (!arguments.weights.empty()) weights = dtype_named(arguments.weights);
  if (is_hugging_face(arguments.source))
    save_hugging_face(open_folder(arguments.source), arguments.folder, arguments.source, weights);
  else
    Run::open(arguments.source, {}, CheckpointChoice::parse(arguments.checkpoint))
        .save_hugging_face(arguments.folder, weights);
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
      ->check(CLI::IsMember({"float32", "bfloat16", "float16", "int8"}));
  command->callback([arguments] { as_wrong_input([&] { write(*arguments); }); });
}

}  // namespace xtape::cli
