/// xtape diff: finds the first difference between two tapes, definitions, runs, ledgers, recipes or files of digests,
/// or between a play and reference arrays.
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
  if (!arguments.recorded.function.empty())
    return same_tapes(definition_recorded(command, arguments, first), definition_recorded(command, arguments, second));
  const Kind ours = kind_of(first), theirs = kind_of(second);
  if (!arguments.first.with.empty() && ours != Kind::onnx && theirs != Kind::onnx)
    throw WrongInput("--with needs --tape FUNCTION, or an ONNX file");
  const auto both = [&](std::initializer_list<Kind> kinds) {
    const auto is_one = [&](Kind kind) { return contains(kinds, kind); };
    return is_one(ours) && is_one(theirs);
  };
  if (both({Kind::play})) return same_plays(first, second);
  if (both({Kind::tape, Kind::onnx, Kind::capsule, Kind::play}))
    return same_tapes(tape_at(first, arguments.first), tape_at(second, arguments.first));
  if (both({Kind::run, Kind::recipe, Kind::play})) return same_trainings(arguments);
  if (both({Kind::run, Kind::ledger})) return same_ledgers(first, second);
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
  const auto [command, arguments] = add_command<DiffArguments>(
      program, "diff", "Print the first difference of two tapes, definitions, runs, ledgers, recipes or plays", diff);
  add_play(command, arguments.first);
  add_option(command, "SECOND", arguments.second,
             "Another of the same kind; or a safetensors file of activations by module, weights and outputs by name",
             required);
  add_option(command, "--tolerance", arguments.tolerance, "The relative difference up to which arrays match",
             shown | not_negative);
  CLI::Option* function = add_option(command, "--tape", arguments.recorded.function,
                                     "Of definitions: record this function of each, and compare the tapes");
  add_option(command, "--weights", arguments.recorded.weights, "Of definitions: a safetensors file with the weights")
      ->needs(function);
  add_option(command, "--mode", arguments.recorded.mode, "Of definitions: train, eval or predict", shown)
      ->needs(function);
  command.add_flag("--grad", arguments.recorded.grad, "Of definitions: also the gradients, as outputs grad.NAME")
      ->needs(function);
}

}  // namespace xtape::cli
