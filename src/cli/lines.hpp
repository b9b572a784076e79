/// Lines of the standard input or of a file, as they arrive.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace xtape::cli {

/// Adds --max-line, which limits the lines of the command's input.
void add_max_line(CLI::App& command, std::int64_t& max_line);

class InputLines {
 public:
  /// `max_line`: the most bytes of a line; 0: any number.
  explicit InputLines(std::int64_t max_line) : max_line_(max_line) {}
  /// The lines of a file. Throws WrongInput if it cannot be opened.
  InputLines(const std::string& path, std::int64_t max_line);
  ~InputLines();
  InputLines(const InputLines&) = delete;
  InputLines& operator=(const InputLines&) = delete;
  /// Waits for a line, then returns the lines that are available without waiting, at most `most`, and
  /// few if they are very long; none at the end of
  /// the input. A last line needs no line end; "\r\n" also ends a line. Throws Interrupted if Ctrl-C comes while it
  /// waits, and WrongInput, after the lines before it are taken, for a line that is too long.
  std::vector<std::string> next(std::size_t most);

 private:
  bool is_too_long(std::size_t length, bool first) const;
  bool take(std::vector<std::string>& lines, std::size_t most);
  bool ready_within(int milliseconds) const;
  void wait() const;
  std::string name_ = "the standard input";
  int file_ = 0;
  std::int64_t max_line_;
  std::int64_t taken_ = 0;  // lines
  std::string pending_;
  std::size_t at_ = 0;      // index in pending_ where the next line begins
  std::size_t looked_ = 0;  // index in pending_ before which there is no line end
  bool ended_ = false;
};

}  // namespace xtape::cli
