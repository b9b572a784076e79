#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "each_line.hpp"
#include "input_watch.hpp"
#include "process_memory.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw FileError("cannot read " + path + ": " + reason);
}

/// Throws FileError if the remaining memory is too small for `bytes` bytes. `what` is their purpose.
void require_memory(const std::string& path, const std::string& what, std::size_t bytes) {
  try {
    require_memory_left(bytes, what);
  } catch (const Error& error) {
    fail(path, error.what());
  }
}

/// The text of a file while it is being read. Checks the lengths of lines and the memory before it accepts more text.
class Incoming {
 public:
  Incoming(const std::string& path, const ReadOptions& options) : path_(path), options_(options), watch_(path) {
    if (options.max_line < 0) throw Error("max_line must not be negative, got " + std::to_string(options.max_line));
  }

  /// Reserves this number of bytes in total.
  void expect(std::size_t bytes) {
    if (bytes <= text_.capacity()) return;
    require_memory(path_, "its text", bytes);
    text_.reserve(bytes);
  }

  void add(const char* bytes, std::size_t count) {
    watch_.add(count);
    if (options_.max_line > 0) check_lines(bytes, count);
    if (text_.size() + count > text_.capacity()) expect(std::max(text_.size() + count, 2 * text_.capacity()));
    text_.append(bytes, count);
  }

  std::size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

 private:
  void check_lines(const char* bytes, std::size_t count) {
    const char* const end = bytes + count;
    for (const char* at = bytes; at < end;) {
      const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      in_line_ += (newline != nullptr ? newline : end) - at;
      if (in_line_ > options_.max_line)
        fail(path_, "line " + std::to_string(line_) + " has " + std::to_string(in_line_) + " bytes" +
                        (newline != nullptr ? "" : " or more") + ", and max_line allows " +
                        std::to_string(options_.max_line) + " (0: any number)");
      if (newline == nullptr) return;
      at = newline + 1;
      in_line_ = 0;
      ++line_;
    }
  }

  const std::string& path_;
  const ReadOptions& options_;
  InputWatch watch_;
  std::string text_;
  std::int64_t line_ = 1, in_line_ = 0;
};

constexpr std::size_t piece_bytes = std::size_t{1} << 17;

/// A compressed file that unpacks to more than 200 times its size is rejected, because a file of a few kilobytes could
/// otherwise fill the memory. Up to 64 MiB of text are always accepted.
constexpr std::size_t most_unpacked_times = 200;
constexpr std::size_t unpacked_in_any_case = std::size_t{64} << 20;

/// Returns the contents of the file. Unpacks them if they are compressed with gzip.
std::string read_compressed(const std::string& path, const ReadOptions& options) {
  Incoming text(path, options);
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail(path, std::strerror(errno != 0 ? errno : ENOMEM));
  gzbuffer(file.get(), static_cast<unsigned>(piece_bytes));
  std::vector<char> piece(piece_bytes);
  int count = 0;
  while ((count = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()))) > 0) {
    text.add(piece.data(), static_cast<std::size_t>(count));
    if (gzdirect(file.get()) != 0) continue;  // not compressed, possibly a pipe, which has no offset
    const auto packed = static_cast<std::size_t>(std::max<z_off_t>(0, gzoffset(file.get())));
    if (text.size() > unpacked_in_any_case && text.size() / most_unpacked_times > packed)
      fail(path, "its first " + std::to_string(packed) + " bytes unpack to " + std::to_string(text.size()) + ", over " +
                     std::to_string(most_unpacked_times) + " times as much, too much for a text");
  }
  // If the file ends too early, gzread returns the data that it has. Only gzerror reports the error.
  int state = Z_OK;
  const std::string reason = gzerror(file.get(), &state);
  if (state == Z_ERRNO) fail(path, std::strerror(errno));
  if (state == Z_BUF_ERROR) fail(path, "the compressed file is cut off");
  if (state != Z_OK) fail(path, "the compressed file is damaged (" + reason + ")");
  // zlib reads a file without gzip's signature as plain text. This includes a .gz file that is cut off within the
  // signature.
  if (gzdirect(file.get()) != 0 && path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0)
    fail(path, "it is not compressed by gzip, as its name says");
  return text.take();
}

}  // namespace

std::string read_text(const std::string& path, const ReadOptions& options) {
  Incoming text(path, options);
  struct File {
    explicit File(const std::string& path) : number(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
      if (number >= 0) close(number);
    }
    int number;
  } const file(path);
  struct stat status {};
  if (file.number < 0 || fstat(file.number, &status) != 0) fail(path, std::strerror(errno));
  if (S_ISREG(status.st_mode)) text.expect(static_cast<std::size_t>(status.st_size));
  std::vector<char> piece(piece_bytes);
  for (;;) {
    const ssize_t count = read(file.number, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, std::strerror(errno));
    if (count == 0) return text.take();
    text.add(piece.data(), static_cast<std::size_t>(count));
  }
}

std::vector<std::string> read_lines(const std::string& path, const ReadOptions& options) {
  const std::string text = read_compressed(path, options);
  const auto count = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  require_memory(path, "a copy of its lines", text.size() + count * sizeof(std::string));
  std::vector<std::string> lines;
  lines.reserve(count + 1);
  for_each_line(text, [&](std::string line) { lines.push_back(std::move(line)); });
  return lines;
}

}  // namespace xtape
