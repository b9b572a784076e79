/// xtape replay: plays a failure capsule again.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

#include "commands.hpp"
#include "instruction_set.hpp"
#include "run_options.hpp"
#include "visit.hpp"
#include "xtape/inspect.hpp"

namespace xtape::cli {
namespace {

struct ReplayArguments {
  std::string capsule, isa;
  std::string dtype;  ///< float64; empty: the dtypes of the capsule.
  int threads = 0;
  bool reference = false;
};

/// Starts the program again with kernels for this instruction set, which is chosen when the program is loaded.
[[noreturn]] void restart(const ReplayArguments& arguments) {
  std::vector<std::string> words{"xtape", "replay", arguments.capsule, "--threads", std::to_string(arguments.threads)};
  if (!arguments.dtype.empty()) words.insert(words.end(), {"--dtype", arguments.dtype});
  if (arguments.reference) words.push_back("--reference");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv("XTAPE_ISA", arguments.isa.c_str(), 1);
  execv("/proc/self/exe", pointers.data());
  throw Error("cannot start the program again for --isa");
}

std::string element_text(const Array& array, std::int64_t flat) {
  std::ostringstream text;
  text.precision(6);
  visit_elements(array, [&](const auto* elements) { text << +elements[flat]; });  // + prints int8 as a number
  return text.str();
}

/// The elements around `index` along the last axis: "[0, 2 … 6]: 1 2 >inf< 3 4".
std::string around(const Array& array, const std::vector<std::int64_t>& index) {
  constexpr std::int64_t before = 3;
  std::int64_t row = 0;
  std::string place;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if (index[axis] >= array.shape()[axis]) throw WrongInput("the capsule's 'element' is outside of its output");
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
  const Shape shape = capsule.outputs[0].value.shape();
  for (const auto& [name, var] : capsule.operands) {
    const Array& array = var.node().storage;
    std::cout << "  " << name << " -> " << to_string(var.type()) << ": " << to_string(range_of(array)) << '\n';
    if (array.shape() == shape && !capsule.failure.element.empty())
      std::cout << "      " << around(array, capsule.failure.element) << '\n';
  }
}

void print(const Capsule& capsule, const Replay& replay) {
  const Failure& failure = capsule.failure;
  std::cout << to_string(failure) << '\n';
  if (!failure.error) {
    std::cout << "  " << to_string(failure.range) << '\n';
    for (const auto& [name, array] : replay.outputs)
      if (array.shape().size() == failure.element.size() && !range_of(array).all_finite()) {
        std::cout << "      " << around(array, failure.element) << '\n';
        break;
      }
  }
  std::cout << "operands:\n";
  print_operands(capsule);
  if (!failure.causes.empty()) std::cout << "where it came from:\n";
  for (const Cause& cause : failure.causes)
    std::cout << "  " << cause.node << " -> " << cause.type << ": " << to_string(cause.range)
              << (cause.site.empty() ? "" : "  at " + cause.site) << '\n';
}

void run(const ReplayArguments& arguments) {
  if (!arguments.isa.empty() && arguments.isa != name_of(instruction_set())) restart(arguments);
  const Capsule capsule = as_wrong_input([&] { return Capsule::load(arguments.capsule); });
  ReplayOptions options;
  options.threads = arguments.threads;
  options.reference = arguments.reference;
  options.float64 = !arguments.dtype.empty();
  const Replay again = replay(capsule, options);
  print(capsule, again);
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
  CLI::App* command =
      program.add_subcommand("replay", "Play a failure capsule again, and say where the failure came from");
  const auto arguments = std::make_shared<ReplayArguments>();
  command->add_option("CAPSULE", arguments->capsule, "The folder of a capsule")->required();
  command->add_option("--dtype", arguments->dtype, "float64 computes all floats as float64")
      ->check(CLI::IsMember({"float64"}));
  command->add_option("--isa", arguments->isa, "The instruction set of the kernels, as XTAPE_ISA");
  add_threads(*command, arguments->threads);
  command->add_flag("--reference", arguments->reference, "Compute by the definitions of the ops, not by their kernels");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace xtape::cli
