// Reads files of several texts. Each text becomes a row.
#include "data/texts/each_line.hpp"
#include "xtape/text.hpp"

namespace xtape {

std::vector<std::string> split_documents(const std::string& text, DocumentEnd end) {
  std::vector<std::string> documents;
  std::string document;
  const auto finish = [&] {
    if (!document.empty()) documents.push_back(std::move(document));
    document.clear();
  };
  for_each_line(text, [&](const std::string& line) {
    const bool blank = line.find_first_not_of(" \t") == std::string::npos;
    if (blank || end == DocumentEnd::line) finish();
    if (!blank) document += (document.empty() ? "" : "\n") + line;
  });
  finish();
  return documents;
}

}  // namespace xtape
