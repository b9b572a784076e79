/// What a program needs of the operating system: its streams, signals and other programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace xtape {

enum StandardStream : int { standard_input = 0, standard_output = 1, standard_error = 2 };
bool is_terminal(StandardStream stream);
/// Prepares the standard streams. It must be called before any input or output. Opens /dev/null for closed standard
/// streams, lets a closed pipe end the program, ignores SIGXFSZ, and ends the program with exit code 1 and a message
/// if a page of a mapped file is gone.
void prepare_streams();
/// From now on, a closed pipe does not end the program. Output to it is lost.
void ignore_closed_pipes();

/// From now on, SIGINT (Ctrl-C), SIGTERM and SIGHUP only set a flag. A second SIGINT or SIGTERM ends the program at
/// once.
void catch_interrupt();
bool interrupted();
int interrupting_signal();  ///< The first signal received, or 0 if there was none.
/// From now on, SIGUSR1 only sets a flag.
void catch_save_request();
bool save_requested();  ///< Whether SIGUSR1 has been received since the last call.

std::string program_path();  ///< The file of this program.
/// Replaces this process by the program, started again with these arguments. Throws Error if the system refuses.
[[noreturn]] void start_again(std::vector<std::string> arguments);
/// Writes the text to the standard error, and ends the process at once. May be called before any constructor has run.
[[noreturn]] void end_process(const std::string& text, int exit_code);
std::size_t stack_limit();  ///< In bytes (ulimit -s); the largest std::size_t if there is none.

/// Loads a shared library. Returns null, and says why, if that fails.
void* load_library(const std::string& path, std::string& why);
void* function_of(void* library, const char* name);  ///< Null if the library has none.

}  // namespace xtape
