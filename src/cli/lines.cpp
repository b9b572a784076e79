#include "lines.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "commands.hpp"

namespace xtape::cli {

namespace {
/// Whether input, or its end, is available within this time.
bool ready_within(int milliseconds) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, milliseconds) > 0;
}

/// Waits for input; throws Interrupted on Ctrl-C. A blocking read() would be restarted after the signal.
void wait_for_input() {
  while (!ready_within(100))
    if (interrupted()) throw Interrupted();
}

void add(std::vector<std::string>& lines, std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  lines.push_back(std::move(line));
}
}  // namespace

/// Moves whole lines from pending_ to `lines`. Returns whether `lines` has `most` lines.
bool InputLines::take(std::vector<std::string>& lines, std::size_t most) {
  while (lines.size() < most) {
    const std::size_t end = pending_.find('\n', std::max(at_, looked_));
    if (end == std::string::npos) break;
    add(lines, pending_.substr(at_, end - at_));
    at_ = end + 1;
  }
  if (lines.size() == most) return true;
  pending_.erase(0, at_);
  at_ = 0;
  looked_ = pending_.size();
  return false;
}

std::vector<std::string> InputLines::next(std::size_t most) {
  std::vector<std::string> lines;
  while (!take(lines, most) && !ended_ && (lines.empty() || ready_within(0))) {
    wait_for_input();
    char bytes[1 << 16];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw WrongInput(std::string("cannot read the standard input: ") + std::strerror(errno));
    if (count > 0) {
      pending_.append(bytes, static_cast<std::size_t>(count));
      continue;
    }
    ended_ = true;
    if (!pending_.empty() && pending_.find('\n') == std::string::npos) {
      add(lines, pending_);
      pending_.clear();
    }
  }
  return lines;
}

}  // namespace xtape::cli
