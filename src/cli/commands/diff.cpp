/// xtape diff: finds the first difference between two tapes, definitions, runs, recipes or files of digests, or between
/// a play and reference arrays.
#include "cli/commands/diff.hpp"

#include <initializer_list>
#include <memory>

#include "base/messages/wording.hpp"
#include "cli/run_options.hpp"

namespace xtape::cli {
namespace {

bool same(const CLI::App& command, const DiffArguments& arguments) {
  const std::string &first = arguments.first.what, &second = arguments.second;
  if (second.ends_with(".safetensors")) return same_as_reference(command, arguments);
  if (!arguments.recorded.function.empty()) {
    const auto recorded = [&](const std::string& path) {
      const RecordedTape made = definition_recorded(command, arguments, path);
      return TapeOutputs{made.tape, made.outputs};
    };
    return same_tapes(recorded(first), recorded(second));
  }
  const Kind ours = kind_of(first), theirs = kind_of(second);
  if (!arguments.first.with.empty() && ours != Kind::onnx && theirs != Kind::onnx)
    throw WrongInput("--with needs --tape FUNCTION, or an ONNX file");
  const auto both = [&](std::initializer_list<Kind> kinds) {
    const auto is_one = [&](Kind kind) { return contains(kinds, kind); };
    return is_one(ours) && is_one(theirs);
  };
  if (both({Kind::play})) return same_plays(first, second);
  if (both({Kind::tape, Kind::onnx, Kind::capsule, Kind::play})) {
    const auto loaded = [&](const std::string& path) {
      const SavedTape saved = tape_at(path, arguments.first);
      return TapeOutputs{saved.tape, saved.outputs};
    };
    return same_tapes(loaded(first), loaded(second));
  }
  if (both({Kind::run, Kind::recipe, Kind::play})) return same_trainings(arguments);
  if (both({Kind::digests})) return same_digests(first, second);
  if (both({Kind::definition})) throw WrongInput("two definitions need --tape FUNCTION --with SIZES");
  throw WrongInput("'" + first + "' is " + kind_text(ours) + " and '" + second + "' is " + kind_text(theirs) +
                   ": diff takes two of one kind");
}

void diff(const CLI::App& command, const DiffArguments& arguments) {
  if (!as_wrong_input([&] { return same(command, arguments); }))
    throw WorkFailed("'" + arguments.first.what + "' and '" + arguments.second + "' differ");
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("diff", "Print the first difference of two tapes, definitions, runs, recipes or plays");
  const auto arguments = std::make_shared<DiffArguments>();
  add_play(*command, arguments->first);
  command
      ->add_option("SECOND", arguments->second,
                   "Another of the same kind; or a safetensors file of activations by module, weights and "
                   "outputs by name")
      ->required();
  command->add_option("--tolerance", arguments->tolerance, "The relative difference up to which arrays match")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI::Option* function = command->add_option("--tape", arguments->recorded.function,
                                              "Of definitions: record this function of each, and compare the tapes");
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
