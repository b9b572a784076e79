/// xtape run: plays a function of a definition, a saved tape or an ONNX model on arrays from a file.
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "cli/opened_model.hpp"
#include "cli/recorded.hpp"
#include "cli/run_options.hpp"
#include "xtape/inspect.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {
namespace {

struct RunArguments {
  RecordedOptions recorded;
  std::string in, out, digests, capsule;
  bool unfused = false;
  int threads = 0;
  std::uint64_t step = 0;
};

/// A recorded function or a tape from a file, and the arrays for its inputs.
struct Work {
  RecordedTape recorded;
  Store arrays;
};

Work prepared(const CLI::App& command, const RunArguments& arguments) {
  RecordedOptions options = arguments.recorded;
  const bool from_file = is_tape_file(options.definition.definition);
  if (is_onnx(options.definition.definition) && !arguments.in.empty()) options.sizes.arrays = load_arrays(arguments.in);
  if (!from_file && options.function.empty()) {
    load_model(options.definition, false);  // throws if the definition does not exist
    throw WrongInput("a definition needs a FUNCTION to play");
  }
  Work work;
  const auto read_inputs = [&](const Model& model) {
    std::vector<Wanted> wanted;
    for (const FunctionInput& input : model.signature(options.function).inputs)
      wanted.push_back({input.name, input.dtype});
    work.arrays = arrays_for(wanted, arguments.in);
  };
  // Reports a wrong file before the weights are made. A folder's weights are read from files, and its warnings printed.
  const bool early = !from_file && !model_folder(options.definition.definition);
  if (early) read_inputs(load_model(options.definition, false));
  work.recorded = recorded_tape(command, options, false, [&](const Model& model, Tape& tape) {
    if (!early) read_inputs(model);
    NamedVars inputs;
    for (const auto& [name, array] : work.arrays) inputs.add(name, tape.input(name, array.shape(), array.dtype()));
    return inputs;
  });
  if (!from_file) return work;
  work.arrays = arrays_for(wanted_by(work.recorded.tape, work.recorded.inputs), arguments.in);
  return work;
}

/// Prints the type and the first elements of a result.
void print(const std::string& name, const ArrayView& values) {
  constexpr std::int64_t most = 8;
  const Array dense(values);
  std::cout << name << ": " << to_string(ValueType{values.dtype(), values.shape()});
  visit_elements(dense, [&](const auto* elements) {
    for (std::int64_t i = 0; i < std::min(dense.count(), most); ++i) std::cout << ' ' << +elements[i];
  });
  std::cout << (dense.count() > most ? " …\n" : "\n");
}

/// Plays. If the play fails and a capsule is wanted, writes the capsule and throws WorkFailed.
void play(Player& player, const std::vector<Feed>& feeds, const RunArguments& arguments) {
  if (arguments.capsule.empty()) return player.play(feeds, arguments.step);
  const RecordedPlay recorded = recorded_play(player, feeds, arguments.step);  // copied before states change
  std::optional<Capsule> found;
  try {
    player.play(feeds, arguments.step);
    const auto is_finite = [&](const Var& output) { return range_of(player.view(output)).all_finite(); };
    if (!std::ranges::all_of(recorded.outputs, is_finite)) found = find_failure(recorded);
  } catch (const Error&) {
    found = find_failure(recorded);
    if (!found) throw;
  }
  if (!found) return;
  found->save(arguments.capsule);
  throw WorkFailed(to_string(found->failure) + "\n'" + arguments.capsule + "' has what is needed to play it again");
}

void run(const CLI::App& command, const RunArguments& arguments) {
  const Work work = as_wrong_input([&] { return prepared(command, arguments); });
  const RecordedTape& recorded = work.recorded;
  if (recorded.outputs.empty()) throw WrongInput("the tape names no output to play");
  Vars outputs;
  for (const auto& each : recorded.outputs) outputs.push_back(each.value);
  PlayerOptions options;
  options.threads = arguments.threads;
  options.seed = arguments.recorded.definition.seed;
  options.digests = !arguments.digests.empty();
  if (arguments.unfused) options.passes = Passes::unfused();
  options.carries = recorded.tape.states();
  for (Carry& state : options.carries)
    if (const Array* array = work.arrays.find(state.input.node().name)) state.memory = *array;
  Player player(recorded.tape, outputs, options);
  std::vector<Feed> feeds;
  for (const auto& [name, var] : recorded.inputs)
    if (!is_state(options.carries, var)) feeds.emplace_back(var, *work.arrays.find(name));
  play(player, feeds, arguments);
  if (options.digests)
    save_digests(arguments.digests, player,
                 {{"seed", std::to_string(options.seed)},
                  {"step", std::to_string(arguments.step)},
                  {"passes", arguments.unfused ? "unfused" : "all"}});
  if (arguments.out.empty()) {
    for (const auto& [name, var] : recorded.outputs) print(name, player.view(var));
    return;
  }
  Store out;
  for (const auto& [name, var] : recorded.outputs) out.add(name, Array(player.view(var)));
  save_arrays(arguments.out, out);
}

}  // namespace

void add_run(CLI::App& program) {
  const auto [command, arguments] = add_command<RunArguments>(
      program, "run", "Play a function of a definition, a saved tape or an ONNX model on arrays from a file", run);
  add_recorded(command, arguments.recorded);
  add_option(command, "FUNCTION", arguments.recorded.function, "The function of the definition to play");
  add_option(command, "--in", arguments.in, "A safetensors file with the inputs by name");
  add_option(command, "--out", arguments.out,
             "The safetensors file to write the results to (default: their first elements are printed)");
  add_option(command, "--step", arguments.step,
             "The random step: with the same seed and step, the same numbers are drawn", shown);
  add_threads(command, arguments.threads);
  add_option(command, "--digests", arguments.digests, "Write the hashes of all values to this file, for xtape diff");
  command.add_flag("--unfused", arguments.unfused, "Play every call by itself, so that each has a digest");
  add_option(command, "--capsule", arguments.capsule,
             "If a result is not finite or a call fails, write the smallest tape that fails to this folder");
}

}  // namespace xtape::cli
