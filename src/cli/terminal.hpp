/// What the program shows on a terminal.
#pragma once

#include <ostream>

namespace xtape::cli {

/// While it lives, what is written to `stream` passes through `escaped` where the file behind it is a terminal:
/// generated text, and texts from files, cannot steer it. A pipe or file gets every byte as it is.
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
