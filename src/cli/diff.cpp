/// xtape diff: the first difference of two tapes, definitions, runs, recipes or files of digests, or of a play and
/// arrays from elsewhere.
#include "diff.hpp"

#include <memory>

#include "durable.hpp"
#include "json_text.hpp"
#include "run_options.hpp"

namespace xtape::cli {
namespace {

/// Whether the text is a file of digests, which is JSON, and not of a recipe.
bool is_digests(const std::string& path) {
  if (!is_plain_file(path)) return false;
  const JsonNode root(read_file(path), path, JsonErrors::file);
  return root.has("digests");
}

/// Whether a file holds arrays: digests are JSON.
bool is_safetensors(const std::string& path) {
  const std::string end = ".safetensors";
  return path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

void diff(const CLI::App& command, const DiffArguments& arguments) {
  const std::string &first = arguments.first.what, &second = arguments.second;
  const bool same = as_wrong_input([&] {
    if (is_safetensors(second)) return same_as_reference(command, arguments);
    if (!arguments.recorded.function.empty())
      return same_tapes(tape_of_definition(command, arguments, first), tape_of_definition(command, arguments, second));
    if (is_saved_tape(first) && is_saved_tape(second)) return same_tapes(Tape::load(first), Tape::load(second));
    if (is_digests(first) || is_digests(second)) return same_digests(first, second);
    return same_trainings(arguments);
  });
  if (!same) throw WorkFailed("'" + first + "' and '" + second + "' differ");
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "diff",
      "Print the first difference of two tapes, definitions, runs, recipes or files of digests, or of a play and a "
      "reference");
  const auto arguments = std::make_shared<DiffArguments>();
  add_play(*command, arguments->first);
  command
      ->add_option("SECOND", arguments->second,
                   "Another of the same kind; or a safetensors file of activations by module, weights and "
                   "outputs by name")
      ->required();
  command->add_option("--tolerance", arguments->tolerance, "The relative difference up to which arrays match")
      ->capture_default_str();
  CLI::Option* function = command->add_option("--tape", arguments->recorded.function,
                                              "Of definitions: record this function of each, and compare the tapes");
  command->add_option("--with", arguments->sizes, "The sizes to record for, such as b=2,t=8")->needs(function);
  command->add_option("--weights", arguments->recorded.weights, "Of definitions: a safetensors file with the weights")
      ->needs(function);
  command->add_option("--mode", arguments->recorded.mode, "Of definitions: train, eval or predict")
      ->capture_default_str()
      ->needs(function);
  command->add_flag("--grad", arguments->recorded.grad, "Of definitions: also the gradients, as outputs grad.NAME")
      ->needs(function);
  command->callback([command, arguments] { diff(*command, *arguments); });
}

}  // namespace xtape::cli
