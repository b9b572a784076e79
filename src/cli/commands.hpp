/// The program's commands. Each has its own file, src/cli/commands/NAME.cpp, and src/cli/meson.build lists its name.
/// The file defines `void add_NAME(CLI::App& program)`, which adds a subcommand with its options and a callback that
/// does the work.
///
/// The conventions of every callback:
///  - results go to stdout, progress and errors to stderr;
///  - a failure is thrown, never printed: main() prints `what()` once and chooses the exit code (see `exit_code`);
///  - long work polls `interrupted()`; if it returns true, the callback cleans up and throws Interrupted.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/system/process.hpp"
#include "xtape/communicator.hpp"
#include "xtape/error.hpp"

namespace xtape::cli {

/// The exit codes of the program.
enum ExitCode : int { done = 0, work_failed = 1, wrong_input = 2, by_signal = 128 };

/// The exit codes with their meanings, for the manual page.
inline constexpr std::pair<const char*, const char*> exit_codes[] = {
    {"0", "The work is done."},
    {"1",
     "The work failed, or a comparison found a difference: a loss that is not finite, a full disk, too little memory."},
    {"2", "The command, or a file that it names, is wrong. Nothing has been computed."},
    {"128+N", "Signal N ended the work after what was done had been saved: 130 is Ctrl-C (SIGINT), 143 SIGTERM."}};

/// The command-line arguments, or the input that they name, are wrong. The exit code is 2.
class WrongInput : public Error {
 public:
  using Error::Error;
};

/// The arguments were valid, but the work failed, for example because of a non-finite loss. The exit code is 1.
class WorkFailed : public Error {
 public:
  using Error::Error;
};

/// Thrown after a signal, once all results are saved. The exit code is 128 + the signal's number: 130 for Ctrl-C.
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
  using Error::Error;
};

// Options.

/// The type name of options whose values are texts that may be empty. main() makes all other options reject empty
/// texts.
inline constexpr const char* any_text = "STRING";

/// What an option is besides its name and help.
enum OptionTraits : unsigned {
  required = 1,
  shown = 2,  ///< The help shows the default.
  positive = 4,
  not_negative = 8,
  may_be_empty = 16,  ///< The text may be empty.
  one_value = 32      ///< An option that can be repeated has one value each time.
};
template <class Value>
CLI::Option* add_option(CLI::App& command, const std::string& name, Value& value, const std::string& help,
                        unsigned traits = 0) {
  CLI::Option* option = command.add_option(name, value, help);
  if ((traits & required) != 0) option->required();
  if ((traits & shown) != 0) option->capture_default_str();
  if ((traits & positive) != 0) option->check(CLI::PositiveNumber);
  if ((traits & not_negative) != 0) option->check(CLI::NonNegativeNumber);
  if ((traits & may_be_empty) != 0) option->type_name(any_text);
  if ((traits & one_value) != 0) option->allow_extra_args(false);
  return option;
}

/// Returns a check of an option's text by a function that throws Error.
template <class Check>
auto error_of(const Check& check) {
  return [check](const std::string& text) -> std::string {
    try {
      check(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
}

/// Adds a command that does its `work` with the arguments that its options set. Returns the command and the arguments,
/// which have the values of options that are not given.
template <class Arguments>
std::pair<CLI::App&, Arguments&> add_command(CLI::App& program, const std::string& name, const std::string& help,
                                             void (*work)(const CLI::App& command, const Arguments&)) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(name, help);
  command->callback([=] { work(*command, *arguments); });
  return {*command, *arguments};
}
template <class Arguments>
std::pair<CLI::App&, Arguments&> add_command(CLI::App& program, const std::string& name, const std::string& help,
                                             void (*work)(const Arguments&)) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(name, help);
  command->callback([=] { work(*arguments); });
  return {*command, *arguments};
}

/// Why a program without ONNX refuses ONNX files, and the cure.
inline constexpr const char* built_without_onnx =
    "this program was built without xtape-onnx, which reads and writes ONNX files: install libprotozero-dev and build "
    "it "
    "in a new folder, as docs/how_to/installing.md says";

/// Calls add_NAME for every command listed in src/cli/meson.build, in that order, and puts it into its group.
void add_commands(CLI::App& program);

/// Returns the exit code for an error. The code is 2 for WrongInput, DefinitionError, FileError, ShapeError, DtypeError
/// and LimitError. For Interrupted, it is 128 + the signal's number. For all other errors, it is 1.
int exit_code(const std::exception& error);

/// Returns what std::printf prints, at most 255 bytes.
template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// Calls `work` and turns each of its Errors into WrongInput, except for those that have an exit code of their own.
template <class Work>
auto as_wrong_input(const Work& work) {
  try {
    return work();
  } catch (const WorkFailed&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    throw WrongInput(error.what());
  }
}

/// Flushes stdout, so that a reader gets the results so far. Throws Interrupted after a signal.
void flush_results();

// The processes that an MPI launcher (mpirun, srun) has started together with this process.

struct RankArguments {
  double timeout = 600;
};
/// Adds the option --timeout.
void add_ranks(CLI::App& command, RankArguments& arguments);

/// Returns the communicator of all ranks, or null if no MPI launcher has started this process. The first call loads the
/// library xtape-mpi. Throws WorkFailed if the library is missing.
std::shared_ptr<Communicator> ranks(const RankArguments& arguments);
/// Returns whether this process prints and writes for all ranks.
bool is_first_rank();
/// Releases the ranks. Afterwards each rank can end independently.
void leave_ranks();
/// Ends all ranks with the exit code. First prints the message, unless another rank of this host has printed an error.
/// Does nothing if there is only one rank.
void end_all_ranks(const std::string& message, int exit_code, bool names_rank);

}  // namespace xtape::cli
