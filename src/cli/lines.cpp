#include "cli/lines.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/messages/wording.hpp"
#include "cli/commands.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/text.hpp"

namespace xtape::cli {

std::streamsize GuardedTerminal::Buffer::xsputn(const char* text, std::streamsize count) {
  const std::string shown = escaped({text, static_cast<std::size_t>(count)});
  const auto length = static_cast<std::streamsize>(shown.size());
  return to_->sputn(shown.data(), length) == length ? count : 0;
}

int GuardedTerminal::Buffer::overflow(int character) {
  if (character == traits_type::eof()) return traits_type::not_eof(character);
  const char byte = traits_type::to_char_type(character);
  return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
}

GuardedTerminal::GuardedTerminal(std::ostream& stream, StandardStream file)
    : stream_(stream), plain_(stream.rdbuf()), guarded_(plain_) {
  if (is_terminal(file)) stream_.rdbuf(&guarded_);
}

GuardedTerminal::~GuardedTerminal() {
  if (stream_.rdbuf() == &guarded_) stream_.rdbuf(plain_);
}

void add_max_line(CLI::App& command, std::int64_t& max_line) {
  max_line = usual_max_line;
  add_option(command, "--max-line", max_line, "The most bytes of a line of the input; 0: any number",
             shown | not_negative);
}

void require_readable(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (!is_readable(file)) throw WrongInput("cannot read " + file + ": " + std::strerror(errno));
}

InputLines::InputLines(const std::string& path, std::int64_t max_line) : name_(path), file_(path), max_line_(max_line) {
  if (file_.first(2) == "\x1F\x8B") {  // gzip
    pending_ = read_text(path);
    if (!pending_.empty() && pending_.back() != '\n') pending_ += '\n';
    ended_ = true;
  }
}

/// Waits for input. Throws Interrupted on Ctrl-C. A blocking read() would be restarted after the signal.
void InputLines::wait() const {
  while (!file_.ready_within(100))
    if (interrupted()) throw Interrupted();
}

/// Returns whether the next line has at least `length` bytes and is therefore too long. If this is the first line of a
/// call, throws WrongInput. Otherwise the lines before it are returned first.
bool InputLines::is_too_long(std::size_t length, bool first) const {
  if (max_line_ == 0 || length <= static_cast<std::size_t>(max_line_)) return false;
  if (!first) return true;
  throw WrongInput("line " + std::to_string(taken_ + 1) + " of " + name_ + " has " + std::to_string(length) +
                   " bytes or more, and --max-line allows " + std::to_string(max_line_) + " (0: any number)");
}

/// Adds the next line of the input.
void InputLines::add(std::vector<std::string>& lines, std::string line) {
  if (taken_ == 0 && line.starts_with("\x1F\x8B"))
    throw WrongInput(name_ + " is compressed by gzip: give the file's name, or unpack it with gunzip");
  if (taken_++ == 0) drop_byte_order_mark(line, name_);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  lines.push_back(std::move(line));
}

/// Moves whole lines from pending_ to `lines`. Returns true if no more lines may be added.
bool InputLines::take(std::vector<std::string>& lines, std::size_t most) {
  constexpr std::size_t most_bytes = std::size_t{16} << 20;  // limit for all lines of a call except the last one
  std::size_t bytes = 0;
  for (const std::string& line : lines) bytes += line.size();
  while (lines.size() < most && bytes < most_bytes) {
    const std::size_t end = pending_.find('\n', std::max(at_, looked_));
    if (is_too_long(std::min(end, pending_.size()) - at_, lines.empty())) return true;
    if (end == std::string::npos) break;
    bytes += end - at_;
    add(lines, pending_.substr(at_, end - at_));
    at_ = end + 1;
  }
  if (lines.size() == most || bytes >= most_bytes) return true;
  pending_.erase(0, at_);
  at_ = 0;
  looked_ = pending_.size();
  return false;
}

std::vector<std::string> InputLines::next(std::size_t most) {
  std::vector<std::string> lines;
  while (!take(lines, most) && !ended_ && (lines.empty() || file_.ready_within(0))) {
    wait();
    char bytes[1 << 16];
    if (const std::size_t count = file_.read(bytes, sizeof bytes); count > 0) {
      pending_.append(bytes, count);
      continue;
    }
    ended_ = true;
    if (taken_ == 0 && pending_ == byte_order_mark) pending_.clear();
    if (!pending_.empty() && pending_.find('\n') == std::string::npos) {
      add(lines, pending_);
      pending_.clear();
    }
  }
  return lines;
}

}  // namespace xtape::cli
