#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "cli/commands.hpp"

namespace xtape::cli {
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

void flush_results() {
  std::cout << std::flush;
  if (interrupted()) throw Interrupted();
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
  signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit becomes a write error, like a full disk
}

void ignore_closed_pipes() {
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace xtape::cli
