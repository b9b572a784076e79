/// Lines of text for the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/system/process.hpp"
#include "base/system/system.hpp"

namespace xtape::cli {

// Safe output to a terminal.

/// During its lifetime, output to `stream` passes through `escaped` if `file`, the file descriptor of the stream, is a
/// terminal. Generated text and texts from files then cannot send control sequences to the terminal. Output to a pipe
/// or file is unchanged.
class GuardedTerminal {
 public:
  GuardedTerminal(std::ostream& stream, StandardStream file);
  ~GuardedTerminal();
  GuardedTerminal(const GuardedTerminal&) = delete;
  GuardedTerminal& operator=(const GuardedTerminal&) = delete;

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(std::streambuf* to) : to_(to) {}

   protected:
    std::streamsize xsputn(const char* text, std::streamsize count) override;
    int overflow(int character) override;
    int sync() override { return to_->pubsync(); }

   private:
    std::streambuf* to_;
  };
  std::ostream& stream_;
  std::streambuf* plain_;
  Buffer guarded_;
};

// Reads lines of the standard input or of a file as they arrive.

/// Adds --max-line, which limits the lines of the command's input.
void add_max_line(CLI::App& command, std::int64_t& max_line);

/// Throws WrongInput if a file does not exist or cannot be read. Commands call it before they open a model.
void require_readable(const std::vector<std::string>& files);

class InputLines {
 public:
  /// `max_line` is the maximum number of bytes of a line. 0 means no limit.
  explicit InputLines(std::int64_t max_line) : max_line_(max_line) {}
  /// Reads the lines of a file, plain or compressed by gzip. Throws FileError if the file cannot be opened.
  InputLines(const std::string& path, std::int64_t max_line);
  /// Waits for a line. Then returns the lines that are available without waiting, at most `most`, and fewer if they are
  /// very long. Returns no lines at the end of the input. The last line needs no line end. "\r\n" also ends a line.
  /// A byte-order mark at the beginning of the input is skipped.
  /// Throws Interrupted if Ctrl-C arrives during the wait. Throws WrongInput if a line is too long, after the lines
  /// before it have been returned.
  std::vector<std::string> next(std::size_t most);

 private:
  bool is_too_long(std::size_t length, bool first) const;
  void add(std::vector<std::string>& lines, std::string line);
  bool take(std::vector<std::string>& lines, std::size_t most);
  void wait() const;
  std::string name_ = "the standard input";
  InputFile file_;
  std::int64_t max_line_;
  std::int64_t taken_ = 0;  // number of lines
  std::string pending_;
  std::size_t at_ = 0;      // index in pending_ at which the next line begins
  std::size_t looked_ = 0;  // there is no line end in pending_ before this index
  bool ended_ = false;
};

}  // namespace xtape::cli
