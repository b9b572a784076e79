/// Fuzz targets for the readers of files and texts. A target is a function of arbitrary bytes. It returns normally if
/// wrong input is refused with an xtape::Error, and if the invariants of accepted input hold. scripts/fuzz.sh runs the
/// targets under libFuzzer; the suite `readers` replays the inputs of tests/fuzz/corpus.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape::fuzz {

using Input = std::string_view;

struct Target {
  const char* name;
  void (*run)(Input input);
};

/// All targets. Each is in the file of its name.
const std::vector<Target>& targets();

/// Thrown if an invariant does not hold.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool holds, const char* what) {
  if (!holds) throw Broken(what);
}

/// The result of `read`; nullopt if it refuses its input. The message must not be empty and must be printable.
template <class Read>
auto accepted(const Read& read) -> std::optional<std::decay_t<decltype(read())>> {
  try {
    return read();
  } catch (const Error& error) {
    const std::string message = error.what();
    require(!message.empty(), "an error has a message");
    require(escaped(message) == message, "a message has no control characters and is UTF-8");
    require(message.size() < 100000, "a message is short enough to read");
    return std::nullopt;
  }
}

/// A file in memory, with a path that readers can open.
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

/// A folder of this process for targets that write files or read several; in memory if the system has such a folder.
const std::string& folder();
void write(const std::string& path, Input bytes);

/// Splits the input at lines of "----", for readers of several files. Missing parts are empty.
std::vector<std::string> parts(Input input, std::size_t count);

}  // namespace xtape::fuzz
