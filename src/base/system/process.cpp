#include "base/system/process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "xtape/error.hpp"

namespace xtape {
namespace {

constexpr int caught[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t received = 0;
volatile sig_atomic_t save = 0;

/// Records the first signal. The next SIGINT or SIGTERM ends the program. Further SIGHUPs are ignored, because systemd
/// may send one right after SIGTERM.
void on_signal(int signal) {
  if (received == 0) received = signal;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGHUP, SIG_IGN);
}

/// Ends the program where it would end with a bus error.
void on_lost_page(int) {
  constexpr char text[] =
      "xtape: a page of a file is gone: the file has become shorter, its disk has an error, or /dev/shm is full\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  _exit(1);
}

}  // namespace

void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int each : caught) {
    struct sigaction before {};
    // nohup makes the process ignore SIGHUP. The program keeps this setting, so that it outlives its terminal.
    if (each == SIGHUP && sigaction(each, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(each, &action, nullptr);
  }
}

void catch_save_request() {
  struct sigaction action {};
  action.sa_handler = [](int) { save = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

bool save_requested() {
  const bool requested = save != 0;
  save = 0;
  return requested;
}

bool interrupted() {
  return received != 0;
}

int interrupting_signal() {
  return received;
}

void prepare_streams() {
  // Opens /dev/null for closed standard streams. Otherwise a file opened later would get the descriptor of such a
  // stream and receive the program's output.
  for (int stream = open("/dev/null", O_RDWR); stream >= 0; stream = open("/dev/null", O_RDWR)) {
    if (stream <= STDERR_FILENO) continue;
    close(stream);
    break;
  }
  signal(SIGPIPE, SIG_DFL);  // a command that only prints ends when its reader ends
  signal(SIGBUS, on_lost_page);
  signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit becomes a write error, like a full disk
}

void ignore_closed_pipes() {
  signal(SIGPIPE, SIG_IGN);
}

bool is_terminal(StandardStream stream) {
  return isatty(stream) == 1;
}

std::string program_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

void start_again(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
  throw Error("cannot start the program again");
}

void end_process(const std::string& text, int exit_code) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(exit_code);
}

std::size_t stack_limit() {
  struct rlimit stack {};
  return getrlimit(RLIMIT_STACK, &stack) == 0 ? stack.rlim_cur : std::numeric_limits<std::size_t>::max();
}

void* load_library(const std::string& path, std::string& why) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) why = dlerror();
  return library;
}

void* function_of(void* library, const char* name) {
  return dlsym(library, name);
}

}  // namespace xtape
