#include <csignal>

#include "commands.hpp"

namespace xtape::cli {
namespace {

volatile std::sig_atomic_t flag = 0;

void on_interrupt(int signal) {
  flag = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupt() {
  std::signal(SIGINT, on_interrupt);
}

bool interrupted() {
  return flag != 0;
}

}  // namespace xtape::cli
