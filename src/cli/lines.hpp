/// Lines of the standard input as they come.
#pragma once

#include <string>
#include <vector>

namespace xtape::cli {

class InputLines {
 public:
  /// At least one line, and those that are there without waiting, up to `most`; none at the end of the input. A last
  /// line without a line end is a line; "\r\n" ends one too. Throws Interrupted where Ctrl-C comes while it waits.
  std::vector<std::string> next(std::size_t most);

 private:
  bool take(std::vector<std::string>& lines, std::size_t most);
  std::string pending_;
  std::size_t at_ = 0;      // where the next line begins in it
  std::size_t looked_ = 0;  // up to where it is known to hold no further line end
  bool ended_ = false;
};

}  // namespace xtape::cli
