/// xtape replay: plays a failure capsule again.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/arrays/visit.hpp"
#include "base/system/durable.hpp"
#include "base/system/instruction_set.hpp"
#include "cli/commands.hpp"
#include "cli/pictures.hpp"
#include "cli/play_of.hpp"
#include "cli/run_options.hpp"
#include "inspect/failing.hpp"
#include "xtape/inspect.hpp"

namespace xtape::cli {
namespace {

struct ReplayArguments {
  std::string capsule, isa, out;
  std::string dtype;  ///< float64. If empty, the dtypes of the capsule.
  int threads = 0;
  bool reference = false;
  bool whole = false;
};

/// Restarts the program with kernels for this instruction set, because the choice is made when the program is loaded.
[[noreturn]] void restart(const ReplayArguments& arguments) {
  std::vector<std::string> words{"xtape", "replay", arguments.capsule, "--threads", std::to_string(arguments.threads)};
  if (!arguments.dtype.empty()) words.insert(words.end(), {"--dtype", arguments.dtype});
  if (arguments.reference) words.push_back("--reference");
  if (arguments.whole) words.push_back("--whole");
  if (!arguments.out.empty()) words.insert(words.end(), {"--out", arguments.out});
  setenv("XTAPE_ISA", arguments.isa.c_str(), 1);
  start_again(words);
}

/// Throws if the program cannot use the kernels of this instruction set.
void check_isa(const std::string& isa) {
  const InstructionSet wanted = as_wrong_input([&] { return instruction_set_named(isa, "--isa"); });
  if (wanted > processor_instruction_set())
    throw WrongInput("--isa " + isa + ": this processor has no " + isa + "; its widest instruction set is " +
                     name_of(processor_instruction_set()));
  if (wanted > instruction_set())
    throw WrongInput("--isa " + isa + ": XTAPE_ISA limits the program to " + name_of(instruction_set()));
}

std::string element_text(const Array& array, std::int64_t flat) {
  std::ostringstream text;
  text.precision(6);
  visit_elements(array, [&](const auto* elements) { text << +elements[flat]; });  // + prints int8 as a number
  return text.str();
}

/// Returns the elements around `index`, which the array has, along the last axis: "[0, 2 … 6]: 1 2 >inf< 3 4".
std::string around(const Array& array, const std::vector<std::int64_t>& index) {
  constexpr std::int64_t before = 3;
  std::int64_t row = 0;
  std::string place;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    row = row * array.shape()[axis] + index[axis];
    if (axis + 1 < index.size()) place += std::to_string(index[axis]) + ", ";
  }
  if (index.empty()) return ">" + element_text(array, 0) + "<";
  const std::int64_t at = index.back(), first = std::max<std::int64_t>(0, at - before);
  const std::int64_t last = std::min(array.shape().back() - 1, at + before);
  std::string text = "[" + place + std::to_string(first) + (last > first ? " … " + std::to_string(last) : "") + "]:";
  for (std::int64_t i = first; i <= last; ++i) {
    const std::string element = element_text(array, row + i - at);
    text += i == at ? " >" + element + "<" : " " + element;
  }
  return text;
}

void print_operands(const Capsule& capsule) {
  const Shape shape = failing_output(capsule).shape();
  for (const auto& [name, var] : capsule.operands) {
    const Array& array = var.node().storage;
    std::cout << "  " << name << " -> " << to_string(var.type()) << ": " << to_string(range_of(array)) << '\n';
    if (array.shape() == shape && !capsule.failure.element.empty())
      std::cout << "      " << around(array, capsule.failure.element) << '\n';
  }
}

void print(const Capsule& capsule, const Replay& replay, const std::string& picture) {
  const Failure& failure = capsule.failure;
  std::cout << to_string(failure) << '\n';
  if (!failure.error) {
    std::cout << "  " << to_string(failure.range) << '\n';
    for (const auto& [name, array] : replay.outputs)
      if (has_element(array.shape(), failure.element) && !range_of(array).all_finite()) {
        std::cout << "      " << around(array, failure.element) << '\n';
        break;
      }
  }
  std::cout << "operands:\n";
  print_operands(capsule);
  if (!failure.causes.empty()) std::cout << "where it came from:\n";
  for (const Cause& cause : failure.causes) std::cout << "  " << to_string(cause) << '\n';
  if (!picture.empty()) write_file(picture, drawn(maps_of_failure(capsule)));
}

/// Returns the folder of the whole play: the argument, or failed_play beside the capsule that the argument names.
std::string whole_play(const std::string& path) {
  if (is_saved_play(path)) return path;
  const std::string beside = path_in(folder_of(path), "failed_play");
  if (!is_capsule(path)) throw WrongInput("'" + path + "' is neither a capsule nor a saved play");
  if (!is_saved_play(beside))
    throw WrongInput("there is no '" + beside + "', the play that '" + path + "' is cut from");
  return beside;
}

/// Plays the whole play again and searches for its failure.
void run_whole(const ReplayArguments& arguments) {
  auto [play, names] = as_wrong_input([&] { return load_play(whole_play(arguments.capsule)); });
  play.options.threads = arguments.threads;
  if (arguments.reference) play.options.passes = Passes::reference();
  if (!arguments.dtype.empty()) {
    WidenedTape wide = in_float64(play.tape, play.outputs);
    Store inputs;
    for (const Store::Entry& input : play.inputs) inputs.add(input.name, in_float64(input.value));
    play.tape = wide.tape;
    play.outputs = wide.vars;
    play.inputs = inputs;
  }
  Player player(play.tape, play.outputs, play.options);
  std::size_t failing = 0;
  try {
    player.play(feeds_of(play), play.step);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Range range = range_of(player.view(play.outputs[i]));
      if (range.all_finite()) continue;
      ++failing;
      std::cout << names[i].name << ": " << to_string(range) << '\n';
    }
    std::cout << failing << " of " << names.size() << " outputs are not finite\n";
  } catch (const Error& error) {
    failing = 1;
    std::cout << error.what() << '\n';
  }
  if (failing == 0) return;
  if (const std::optional<Capsule> found = find_failure(play)) print(*found, replay(*found), arguments.out);
}

void run(const ReplayArguments& arguments) {
  if (!arguments.isa.empty()) {
    check_isa(arguments.isa);
    if (arguments.isa != name_of(instruction_set())) restart(arguments);
  }
  if (arguments.whole || is_saved_play(arguments.capsule)) return run_whole(arguments);
  const Capsule capsule = as_wrong_input([&] { return Capsule::load(arguments.capsule); });
  ReplayOptions options;
  options.threads = arguments.threads;
  options.reference = arguments.reference;
  options.float64 = !arguments.dtype.empty();
  const Replay again = replay(capsule, options);
  print(capsule, again, arguments.out);
  std::cout << "failed with xtape " << capsule.version << ", " << capsule.instruction_set << "; played again with "
            << XTAPE_VERSION << ", " << name_of(instruction_set()) << (options.reference ? ", by definitions" : "")
            << (options.float64 ? ", in float64" : "") << ": ";
  if (!again.error.empty() && !capsule.failure.error)
    std::cout << again.error;
  else if (again.same_bits)
    std::cout << (capsule.failure.error ? "the same error" : "the same bits");
  else
    std::cout << (again.fails ? "it fails too, with other bits" : "it does not fail");
  std::cout << '\n';
  if (!again.fails)
    for (const auto& [name, array] : again.outputs)
      std::cout << "  " << name << ": " << to_string(range_of(array)) << '\n';
}

}  // namespace

void add_replay(CLI::App& program) {
  const auto [command, arguments] = add_command<ReplayArguments>(
      program, "replay", "Play a failure capsule again, and say where the failure came from", run);
  add_option(command, "CAPSULE", arguments.capsule, "The folder of a capsule, or of the whole play that failed",
             required);
  command.add_flag("--whole", arguments.whole,
                   "Play the whole play that the capsule is cut from, the folder failed_play beside it");
  add_option(command, "--dtype", arguments.dtype, "float64 computes all floats as float64")
      ->check(CLI::IsMember({"float64"}));
  add_option(command, "--isa", arguments.isa,
             "The instruction set of the kernels: one that the processor has and XTAPE_ISA allows");
  add_threads(command, arguments.threads);
  add_picture(command, arguments.out, "", "Draw the values that lead to the failure to this file");
  command.add_flag("--reference", arguments.reference, "Compute by the definitions of the ops, not by their kernels");
}

}  // namespace xtape::cli
