#include "cli/terminal.hpp"

#include <unistd.h>

#include "base/messages/characters.hpp"

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

GuardedTerminal::GuardedTerminal(std::ostream& stream, int file)
    : stream_(stream), plain_(stream.rdbuf()), guarded_(plain_) {
  if (isatty(file) == 1) stream_.rdbuf(&guarded_);
}

GuardedTerminal::~GuardedTerminal() {
  if (stream_.rdbuf() == &guarded_) stream_.rdbuf(plain_);
}

}  // namespace xtape::cli
