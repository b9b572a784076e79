// Files of rows, one per line, split into fields.
#include "fields.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
[[noreturn]] void fail(const std::string& path, std::size_t line, const std::string& message) {
  throw FileError(path + ", line " + std::to_string(line) + ": " + message);
}

}  // namespace

TableTexts read_table(const std::string& path, const TableOptions& options) {
  if (options.columns < 1) throw Error("a table must have at least one column");
  if (options.skip_lines < 0) throw Error("skip_lines must not be negative, got " + std::to_string(options.skip_lines));
  const std::vector<std::string> lines = read_lines(path, options.reading);
  TableTexts table(options.columns);
  for (auto i = static_cast<std::size_t>(options.skip_lines); i < lines.size(); ++i) {
    std::vector<std::string> fields;
    try {
      fields = fields_of(lines[i], options.delimiter, options.columns);
    } catch (const Error& error) {
      fail(path, i + 1, error.what());
    }
    if (fields.size() < options.columns || (fields.size() > options.columns && !options.more)) {
      const std::string parted = options.delimiter == '\t' ? "tabs" : std::string("'") + options.delimiter + "'";
      fail(path, i + 1,
           "a row must have " + std::to_string(options.columns) + " fields separated by " + parted + ", got " +
               (fields.size() > options.columns ? "more" : std::to_string(fields.size())));
    }
    for (std::size_t column = 0; column < options.columns; ++column) table[column].push_back(std::move(fields[column]));
  }
  return table;
}

PairTexts read_pairs(const std::string& path, const ReadOptions& options) {
  TableTexts table = read_table(path, {.columns = 2, .more = true, .reading = options});
  return {std::move(table[0]), std::move(table[1])};
}

PairTexts read_pairs(const std::string& source, const std::string& target, const ReadOptions& options) {
  PairTexts pairs = {read_lines(source, options), read_lines(target, options)};
  if (pairs.source.size() != pairs.target.size())
    throw Error(source + " has " + std::to_string(pairs.source.size()) + " lines and " + target + " " +
                std::to_string(pairs.target.size()) + ": line i of one must translate line i of the other");
  return pairs;
}

}  // namespace xtape
