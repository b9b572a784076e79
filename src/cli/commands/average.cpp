/// xtape average: writes the mean of the weights of several checkpoints or runs.
#include <iostream>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "cli/commands.hpp"
#include "cli/run_options.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {
namespace {

struct AverageArguments {
  std::vector<std::string> sources;
  std::string checkpoint = "last";
  std::string out;
};

bool has_recipe(const std::string& path) {
  return path_exists(path_in(path, "recipe.json"));
}

/// Returns the files of weights that a source stands for.
std::vector<std::string> files_of(const std::string& source, const CheckpointChoice& choice) {
  if (!is_folder(source)) return {source};
  std::vector<std::string> folders = {source};
  if (has_recipe(source)) folders = train::chosen_checkpoints(path_in(source, train::checkpoints_folder), choice);
  for (std::string& folder : folders) {
    const std::string file = path_in(folder, "weights.safetensors");
    if (!path_exists(file))
      throw FileError(source +
                      " is neither a run nor a checkpoint nor a safetensors file: it has no recipe.json and no " +
                      "weights.safetensors");
    folder = file;
  }
  return folders;
}

/// Returns the run to which a file of weights belongs, or "" if there is none.
std::string run_of(const std::string& file) {
  const std::string run = folder_of(folder_of(folder_of(file)));
  return has_recipe(run) ? run : "";
}

void average(const AverageArguments& arguments) {
  as_wrong_input([&] {
    const CheckpointChoice choice = CheckpointChoice::parse(arguments.checkpoint);
    if (choice.ema)
      throw Error("moving averages are arrays of checkpoints/STEP/ema.safetensors: name these files to average them");
    std::vector<std::string> files;
    for (const std::string& source : arguments.sources)
      for (const std::string& file : files_of(source, choice)) files.push_back(file);
    if (files.size() < 2)
      throw Error("one checkpoint has no average: name several, or --checkpoint average:N of a run");
    if (path_exists(arguments.out)) throw Error(arguments.out + " already exists");
    if (arguments.out.ends_with(".safetensors")) {
      Store means;
      train::for_each_mean(files, [&](const std::string& name, Array mean) { means.add(name, mean); });
      save_arrays(arguments.out, means);
    } else {
      const std::string run = run_of(files.back());
      if (run.empty())
        throw Error("a folder needs the recipe of a run, and " + files.back() +
                    " is not of one: give --out FILE.safetensors, or name a run last");
      const std::int64_t step = train::step_of_checkpoint(folder_of(files.back()));
      if (step < 0)
        throw Error(folder_of(files.back()) + " is not the checkpoint of a step: give --out FILE.safetensors");
      train::write_mean_run(files, run, step, arguments.out);
    }
    std::cout << arguments.out << ": the mean of " << joined(files) << '\n';
  });
}

}  // namespace

void add_average(CLI::App& program) {
  const auto [command, arguments] = add_command<AverageArguments>(
      program, "average", "Write the mean of the weights of several checkpoints or runs", average);
  add_option(command, "SOURCE", arguments.sources,
             "Runs, folders of checkpoints, and safetensors files. All have weights of the same names and shapes",
             required);
  add_option(command, "--out", arguments.out,
             "FILE.safetensors, or the folder of a new run with the recipe of the last source, to use but not to train",
             required);
  add_checkpoint(command, arguments.checkpoint,
                 "Of each run: last, best, the number of a step, or the last N of them, average:N");
}

}  // namespace xtape::cli
