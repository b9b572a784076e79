/// Safe output to a terminal.
#pragma once

#include <ostream>

namespace xtape::cli {

/// During its lifetime, output to `stream` passes through `escaped` if `file`, the file descriptor of the stream, is a
/// terminal. Generated text and texts from files then cannot send control sequences to the terminal. Output to a pipe
/// or file is unchanged.
class GuardedTerminal {
 public:
  GuardedTerminal(std::ostream& stream, int file);
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

}  // namespace xtape::cli
