#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "commands.hpp"

namespace xtape::cli {
namespace {

constexpr int caught[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t received = 0;

/// The first signal is noted. The next SIGINT or SIGTERM ends the program. A SIGHUP does not: systemd sends one right
/// after SIGTERM, and under nohup it means nothing.
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
    // Under nohup the program outlives its terminal.
    if (each == SIGHUP && sigaction(each, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(each, &action, nullptr);
  }
}

bool interrupted() {
  return received != 0;
}

int interrupting_signal() {
  return received;
}

void prepare_streams() {
  // What is opened later must not become the standard output of a program that was started without one.
  for (int stream = open("/dev/null", O_RDWR); stream >= 0; stream = open("/dev/null", O_RDWR)) {
    if (stream <= STDERR_FILENO) continue;
    close(stream);
    break;
  }
  signal(SIGPIPE, SIG_DFL);  // who only prints ends with whoever reads it
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk
}

void outlive_readers() {
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace xtape::cli
