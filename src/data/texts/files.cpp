#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system/folder_file.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/system.hpp"
#include "data/texts/texts.hpp"
#include "data/tokenizers/utf8.hpp"
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

/// A text while it is being read. Checks the lengths of its lines, and gives the text on without a byte-order mark.
class Incoming {
 public:
  Incoming(const std::string& path, const ReadOptions& options, const TakesText& take)
      : path_(path), options_(options), take_(take) {
    if (options.max_line < 0) throw Error("max_line must not be negative, got " + std::to_string(options.max_line));
  }

  void add(const char* bytes, std::size_t count) {
    if (options_.max_line > 0) check_lines(bytes, count);
    size_ += count;
    if (begun_) return give({bytes, count});
    first_.append(bytes, count);
    if (first_.size() >= longest_mark) begin();
  }
  /// Gives what is left after the last piece.
  void finish() {
    if (!begun_) begin();
  }
  std::size_t size() const { return size_; }
  bool is_wanted() const { return wanted_; }  ///< Whether `take` wants more text.

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

  void begin() {
    begun_ = true;
    drop_byte_order_mark(first_, path_);
    give(first_);
    first_ = std::string();
  }
  void give(std::string_view piece) {
    if (wanted_ && !piece.empty()) wanted_ = take_(piece);
  }

  static constexpr std::size_t longest_mark = 4;
  const std::string& path_;
  const ReadOptions& options_;
  const TakesText& take_;
  std::string first_;  // the text until it is known whether it begins with a byte-order mark
  bool begun_ = false, wanted_ = true;
  std::size_t size_ = 0;
  std::int64_t line_ = 1, in_line_ = 0;
};

constexpr std::size_t piece_bytes = std::size_t{1} << 17;

/// A compressed file that unpacks to more than 200 times its size is rejected, because a file of a few kilobytes could
/// otherwise fill the memory. Up to 64 MiB of text are always accepted.
constexpr std::size_t most_unpacked_times = 200;
constexpr std::size_t unpacked_in_any_case = std::size_t{64} << 20;

constexpr std::string_view gzip_mark = "\x1F\x8B";

/// Unpacks a file that is compressed with gzip, piece by piece. The file may have several members, one after the other.
class Gzip {
 public:
  explicit Gzip(const std::string& path) : path_(path), unpacked_(piece_bytes) {
    constexpr int with_header = 15 + 16;
    if (inflateInit2(&stream_, with_header) != Z_OK) throw std::bad_alloc();
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { inflateEnd(&stream_); }

  void unpack(char* packed, std::size_t count, Incoming& text) {
    packed_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(packed);
    stream_.avail_in = static_cast<uInt>(count);
    while (stream_.avail_in > 0) {
      if (ended_ && *stream_.next_in != static_cast<Bytef>(gzip_mark[0])) return;  // padding after the last member
      if (std::exchange(ended_, false)) inflateReset(&stream_);
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(unpacked_.data());
        stream_.avail_out = static_cast<uInt>(unpacked_.size());
        const int state = inflate(&stream_, Z_NO_FLUSH);
        if (state == Z_MEM_ERROR) throw std::bad_alloc();
        if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
          fail(path_,
               std::string("the compressed file is damaged (") + (stream_.msg ? stream_.msg : "no reason") + ")");
        ended_ = state == Z_STREAM_END;
        text.add(unpacked_.data(), unpacked_.size() - stream_.avail_out);
        check_size(text.size());
      } while (!ended_ && stream_.avail_out == 0);
    }
  }

  void finish() const {
    if (!ended_) fail(path_, "the compressed file is cut off");
  }

 private:
  void check_size(std::size_t unpacked) const {
    if (unpacked > unpacked_in_any_case && unpacked / most_unpacked_times > packed_)
      fail(path_, "its first " + std::to_string(packed_) + " bytes unpack to " + std::to_string(unpacked) + ", over " +
                      std::to_string(most_unpacked_times) + " times as much, too much for a text");
  }

  const std::string& path_;
  std::vector<char> unpacked_;
  z_stream stream_ = {};
  std::size_t packed_ = 0;  // the number of bytes so far
  bool ended_ = false;      // whether a member has just ended
};
}  // namespace

void stream_text(const std::string& path, const ReadOptions& options, const TakesText& take, const char* verb) {
  InputWatch watch(path, verb);
  Incoming incoming(path, options, take);
  if (const PathInside inside = path_inside(path); inside.file != nullptr && inside.text() != nullptr) {
    incoming.add(inside.text()->data(), inside.text()->size());
    return incoming.finish();
  }
  InputFile file(path);
  std::vector<char> piece(piece_bytes);
  std::size_t held = 0;  // the number of bytes in `piece`
  std::optional<Gzip> gzip;
  for (bool begun = false, ended = false; !ended;) {
    const std::size_t count = file.read(piece.data() + held, piece.size() - held);
    watch.add(count);
    held += count;
    ended = count == 0;
    if (!begun && !ended && held < gzip_mark.size()) continue;
    if (!std::exchange(begun, true) && std::string_view(piece.data(), held).starts_with(gzip_mark)) gzip.emplace(path);
    if (gzip)
      gzip->unpack(piece.data(), held, incoming);
    else
      incoming.add(piece.data(), held);
    if (!incoming.is_wanted()) return;
    held = 0;
  }
  if (gzip) gzip->finish();
  if (!gzip && path.ends_with(".gz")) fail(path, "it is not compressed by gzip, as its name says");
  incoming.finish();
}

std::string read_text(const std::string& path, const ReadOptions& options) {
  std::string text;
  const auto expect = [&](std::size_t bytes) {
    if (bytes <= text.capacity()) return;
    require_memory(path, "its text", bytes);
    text.reserve(bytes);
  };
  if (const auto state = state_of_file(path); state && state->kind == FileState::regular) expect(state->bytes);
  stream_text(path, options, [&](std::string_view piece) {
    if (text.size() + piece.size() > text.capacity()) expect(std::max(text.size() + piece.size(), 2 * text.capacity()));
    text += piece;
    return true;
  });
  return text;
}

std::vector<std::string> read_lines(const std::string& path, const ReadOptions& options) {
  const std::string text = read_text(path, options);
  const auto count = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  require_memory(path, "a copy of its lines", text.size() + count * sizeof(std::string));
  std::vector<std::string> lines;
  lines.reserve(count + 1);
  for_each_line(text, [&](std::string line) { lines.push_back(std::move(line)); });
  return lines;
}

namespace {
struct Watching {
  std::function<void(const std::string&)> tell;
  double seconds = 0;
};
Watching& watching() {
  static Watching the;
  return the;
}

/// Returns "a pipe" or another description. Returns nullptr for files whose reading always ends: regular files,
/// folders, and files that do not exist.
const char* kind_of(const std::optional<FileState>& state) {
  if (!state || state->kind == FileState::regular || state->kind == FileState::folder) return nullptr;
  return state->kind == FileState::pipe ? "a pipe" : state->kind == FileState::socket ? "a socket" : "a device";
}

/// Files from this size on are watched although they always end, because what is made of them takes seconds.
constexpr std::size_t large_file = std::size_t{256} << 20;
}  // namespace

void watch_inputs(std::function<void(const std::string&)> tell, double seconds) {
  if (!(seconds > 0)) throw Error("watch_inputs: the time must be positive, got " + std::to_string(seconds));
  watching() = {std::move(tell), seconds};
}

InputWatch::InputWatch(const std::string& path, const char* verb) {
  if (!watching().tell) return;
  const std::optional<FileState> state = state_of_file(path);
  const char* kind = kind_of(state);
  const std::size_t size = state && state->kind == FileState::regular ? state->bytes : 0;
  if (kind == nullptr && size < large_file) return;
  what_ = verb + (" " + path) + (kind == nullptr ? "" : std::string(", ") + kind) + ": ";
  seconds_ = watching().seconds;
  if (kind == nullptr) {
    of_ = " of " + bytes_text(size);
    seconds_ = std::min(seconds_, 1.0);
  }
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // The file can be read without being watched.
  }
}

InputWatch::~InputWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void InputWatch::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (double seconds = seconds_;; seconds *= 2) {
    if (ends_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return ended_; })) return;
    const std::size_t bytes = bytes_;
    const std::string far = bytes == 0 ? "nothing has come so far" : bytes_text(bytes) + of_ + " so far";
    lock.unlock();
    watching().tell(what_ + far);
    lock.lock();
  }
}

}  // namespace xtape
