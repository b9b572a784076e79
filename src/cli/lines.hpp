/// Lines of the standard input, as they arrive.
#pragma once

#include <string>
#include <vector>

namespace xtape::cli {

class InputLines {
 public:
  /// Waits for a line, then returns the lines that are available without waiting, at most `most`; none at the end of
  /// the input. A last line needs no line end; "\r\n" also ends a line. Throws Interrupted if Ctrl-C comes while it
  /// waits.
  std::vector<std::string> next(std::size_t most);

 private:
  bool take(std::vector<std::string>& lines, std::size_t most);
  std::string pending_;
  std::size_t at_ = 0;      // index in pending_ where the next line begins
  std::size_t looked_ = 0;  // index in pending_ before which there is no line end
  bool ended_ = false;
};

}  // namespace xtape::cli
