/// Fuzz targets for what reads files and texts. A target is a function on any bytes that returns where all is well: input
/// that is wrong is refused with an xtape::Error, and of input that is read an invariant holds. scripts/fuzz.sh runs
/// the targets under libFuzzer; the suite `readers` replays the inputs that are kept in tests/fuzz/corpus.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "characters.hpp"
#include "xtape/error.hpp"

namespace xtape::fuzz {

using Input = std::string_view;

struct Target {
  const char* name;
  void (*run)(Input input);
};

/// All targets, each in the file of its name.
const std::vector<Target>& targets();

/// An invariant that does not hold.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool holds, const char* what) {
  if (!holds) throw Broken(what);
}

/// What `read` gives; nothing where it refuses its input. Its message must say something, and be fit to be shown.
template <class Read>
auto accepted(const Read& read) -> std::optional<std::decay_t<decltype(read())>> {
  try {
    return read();
  } catch (const Error& error) {
    const std::string message = error.what();
    require(!message.empty(), "an error has a message");
    require(escaped(message) == message, "a message holds no control characters, and is UTF-8");
    require(message.size() < 100000, "a message is no longer than somebody may read");
    return std::nullopt;
  }
}

/// A file that lies in memory alone, with a path that readers can open.
class MemoryFile {
 public:
  explicit MemoryFile(Input bytes = {});
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();
  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_;
};

/// A folder of this process for targets that write files or read several, in memory where the system has such a place.
const std::string& folder();
void write(const std::string& path, Input bytes);

/// The input's parts, between lines of "----": readers of several files get one each. Missing ones are empty.
std::vector<std::string> parts(Input input, std::size_t count);

}  // namespace xtape::fuzz
