/// The program's commands. Each stands in its own file, src/cli/NAME.cpp, listed by name in src/cli/meson.build, and
/// defines `void add_NAME(CLI::App& program)`, which adds a subcommand with its options and a callback that does the
/// work.
///
/// Conventions of every callback:
///  - results go to stdout, progress and errors to stderr;
///  - a failure is thrown, never printed: main() prints `what()` once and chooses the exit code (see `exit_code`);
///  - work that can take long asks `interrupted()` now and then, leaves things in order, and throws Interrupted.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include "xtape/error.hpp"

namespace xtape::cli {

/// What the program exits with.
enum ExitCode : int { done = 0, work_failed = 1, wrong_input = 2, by_signal = 128 };

/// The words on the command line, or the input they name, are wrong: exit code 2.
class WrongInput : public Error {
 public:
  using Error::Error;
};

/// The words were right, the work itself failed (a loss that is not finite, a check that does not hold): exit code 1.
class WorkFailed : public Error {
 public:
  using Error::Error;
};

/// A signal, once everything worth keeping has been kept: exit code 128 + its number, 130 of Ctrl-C.
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
  using Error::Error;
};

/// WrongInput and the errors of definitions, files, shapes and dtypes are of the input: 2. All others: 1.
int exit_code(const std::exception& error);

/// Does `work`, whose every error is about what the caller gave.
template <class Work>
auto of_the_input(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw WrongInput(error.what());
  }
}

/// From here on SIGINT (Ctrl-C), SIGTERM and SIGHUP only set a flag; a second SIGINT or SIGTERM ends the
/// program at once.
void catch_interrupt();
bool interrupted();
int interrupting_signal();  ///< 0 before one came.

/// Before anything is read or written: closed standard streams become /dev/null, and a closed pipe ends the program.
void prepare_streams();
/// From here on a closed pipe does not end the program: what is printed into it is lost.
void outlive_readers();

}  // namespace xtape::cli
