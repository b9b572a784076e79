#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "xtape/error.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw FileError("cannot read " + path + ": " + reason);
}

/// A compressed file that unpacks to more than 200 times its size is rejected, so that a few kilobytes cannot fill the
/// memory. Up to 64 MiB of text are always accepted.
constexpr std::size_t most_unpacked_times = 200;
constexpr std::size_t unpacked_in_any_case = std::size_t{64} << 20;

/// The contents of the file, unpacked if it is compressed by gzip.
std::string read_compressed(const std::string& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail(path, std::strerror(errno != 0 ? errno : ENOMEM));
  gzbuffer(file.get(), 1U << 17);
  std::string text;
  std::vector<char> piece(1U << 17);
  int count = 0;
  while ((count = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()))) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(count));
    if (gzdirect(file.get()) != 0) continue;  // not compressed; and a pipe has no offset
    const auto packed = static_cast<std::size_t>(std::max<z_off_t>(0, gzoffset(file.get())));
    if (text.size() > unpacked_in_any_case && text.size() / most_unpacked_times > packed)
      fail(path, "its first " + std::to_string(packed) + " bytes unpack to " + std::to_string(text.size()) + ", over " +
                     std::to_string(most_unpacked_times) + " times as much, too much for a text");
  }
  // If the file ends too early, gzread returns the data up to there, and only gzerror reports the error.
  int state = Z_OK;
  const std::string reason = gzerror(file.get(), &state);
  if (state == Z_ERRNO) fail(path, std::strerror(errno));
  if (state == Z_BUF_ERROR) fail(path, "the compressed file is cut off");
  if (state != Z_OK) fail(path, "the compressed file is damaged (" + reason + ")");
  // zlib reads a file without gzip's signature as plain text; this includes a .gz file that is cut off within it.
  if (gzdirect(file.get()) != 0 && path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0)
    fail(path, "it is not compressed by gzip, as its name says");
  return text;
}

}  // namespace

std::string read_text(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  in.peek();  // a directory can be opened, but reading it fails
  if (!in.is_open() || in.bad()) fail(path, std::strerror(errno != 0 ? errno : EIO));
  std::ostringstream text;
  if (!in.eof()) text << in.rdbuf();
  return text.str();
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string text = read_compressed(path);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    std::size_t end = newline;
    if (end > begin && text[end - 1] == '\r') --end;
    lines.push_back(text.substr(begin, end - begin));
    begin = newline + 1;
  }
  return lines;
}

}  // namespace xtape
