// Reads files of several texts. Each text becomes a row.
#include <algorithm>

#include "xtape/text.hpp"

namespace xtape {

std::vector<std::string> split_documents(const std::string& text, DocumentEnd end) {
  std::vector<std::string> documents;
  std::string document;
  const auto finish = [&] {
    if (!document.empty()) documents.push_back(std::move(document));
    document.clear();
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, newline - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool blank = line.find_first_not_of(" \t") == std::string::npos;
    if (blank || end == DocumentEnd::line) finish();
    if (!blank) document += (document.empty() ? "" : "\n") + line;
    begin = newline + 1;
  }
  finish();
  return documents;
}

}  // namespace xtape
