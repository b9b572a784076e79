/// xtape export: writes a run's model as a folder of the Hugging Face Hub.
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "definition_words.hpp"
#include "durable.hpp"
#include "folder.hpp"
#include "run_words.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct ExportArguments {
  std::string source, folder;
  std::string checkpoint = "last";
};

void write(const ExportArguments& words) {
  if (path_exists(words.folder)) throw WrongInput(words.folder + " exists already");
  if (is_hugging_face(words.source)) {
    save_hugging_face(open_folder(words.source), words.folder, words.source);
  } else {
    Run run = Run::open(words.source, {}, CheckpointChoice::parse(words.checkpoint));
    run.save_hugging_face(words.folder);
  }
  std::cout << words.folder << '\n';
}

}  // namespace

void add_export(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "export", "Write a run's model as a folder with config.json and model.safetensors, as transformers reads it");
  const auto words = std::make_shared<ExportArguments>();
  command
      ->add_option("RUN", words->source, "A run directory, or such a folder: its weights become float32, in one file")
      ->required();
  command->add_option("FOLDER", words->folder, "The folder to write")->required();
  add_checkpoint(*command, words->checkpoint);
  command->callback([words] { of_the_input([&] { write(*words); }); });
}

}  // namespace xtape::cli
