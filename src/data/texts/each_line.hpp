/// The lines of a text.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

namespace xtape {

/// Calls take(line) for each line, without its end, "\n" or "\r\n". The last line needs no end.
template <class Take>
void for_each_line(const std::string& text, const Take& take) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, newline - begin);
    if (line.ends_with('\r')) line.pop_back();
    take(std::move(line));
    begin = newline + 1;
  }
}

}  // namespace xtape
