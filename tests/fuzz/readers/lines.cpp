// Lines of plain and compressed files; the texts in a file.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "data/tables/fields.hpp"
#include "target.hpp"
#include "xtape/csv.hpp"
#include "xtape/text.hpp"

namespace xtape::fuzz {

namespace {
std::string compressed(Input text) {
  z_stream stream = {};
  constexpr int gzip = 16;  // added to the window bits: selects gzip's header
  require(deflateInit2(&stream, 1, Z_DEFLATED, gzip + 10, 1, Z_DEFAULT_STRATEGY) == Z_OK, "zlib begins");
  std::string bytes(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib ends");
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

/// Quotes every line of the input as a field of one row, and reads the row back.
void quoted(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += text.empty() ? "\"" : ",\"";
    for (const char each : line + "\n")
      if (each != '\r') text += each == '"' ? std::string("\"\"") : std::string(1, each);
    text += '"';
  }
  const MemoryFile file(text);
  const TableTexts table = read_table(file.path(), {.columns = lines.size(), .delimiter = ','});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string expected = lines[i] + "\n";
    std::erase(expected, '\r');
    require(table[i] == std::vector<std::string>{expected}, "a quoted field is read back");
  }
}

/// Compares the number of a field with that of the C library.
void number(const std::string& field) {
  const auto found = accepted([&] { return number_of<double>(field); });
  const std::string text = field.substr(0, field.find('\0'));
  char* end = nullptr;
  const double expected = std::strtod(text.c_str(), &end);
  const std::string rest = end;
  const bool decimal = field == text && text.find_first_not_of(" \t+-.0123456789eE") == std::string::npos &&
                       rest.find_first_not_of(" \t") == std::string::npos && end != text.c_str();
  require(found.has_value() == (decimal && std::isfinite(expected)), "decimal numbers are read, and nothing else");
  require(!found || *found == expected, "a number has the value that the C library gives it");
}

/// Reads a table with and without missing values.
void csv(const std::string& path) {
  const auto strict = accepted([&] { return read_csv(path); });
  const auto lenient = accepted([&] { return read_csv(path, {.missing = true}); });
  require(!strict || lenient, "a table without missing values can be read as one with them");
  if (!strict) return;
  for (const auto& [name, array] : strict->columns) {
    require(array.count() == strict->rows && lenient->at(name).count() == strict->rows, "a column has every row");
    for (std::int64_t i = 0; i < strict->rows; ++i)
      require(array.as<float>()[i] == lenient->at(name).as<float>()[i], "both ways read the same numbers");
  }
}
}  // namespace

void lines(Input input) {
  const MemoryFile plain(input);
  const auto read = accepted([&] { return read_lines(plain.path()); });
  const bool is_gzip = input.starts_with("\x1F\x8B");
  require(read || is_gzip || other_encoding(input), "any plain file has lines, except UTF-16");
  csv(plain.path());
  if (!is_gzip && read) {
    if (!read->empty()) quoted(*read);
    for (const std::string& line : *read) number(line);
    std::string joined, expected;
    for (const std::string& line : *read) {
      require(line.find('\n') == std::string::npos, "a line contains no line end");
      joined += line + "\n";
    }
    const Input text = input.substr(input.starts_with(byte_order_mark) ? byte_order_mark.size() : 0);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] != '\r' || (i + 1 < text.size() && text[i + 1] != '\n')) expected += text[i];
    if (!text.empty() && text.back() != '\n') expected += '\n';
    require(joined == expected, "the joined lines are the text");
    const MemoryFile packed(compressed(input));
    require(read_lines(packed.path()) == *read, "a compressed file has the lines of the plain one");
  }
  for (const DocumentEnd end : {DocumentEnd::line, DocumentEnd::blank_line})
    for (const std::string& text : split_documents(std::string(input), end)) {
      require(!text.empty() && text.back() != '\n', "a text of a file is not empty");
      require(end == DocumentEnd::blank_line || text.find('\n') == std::string::npos,
              "a text that ends with its line has one line");
    }
  if (const auto pairs = accepted([&] { return read_pairs(plain.path()); })) {
    const auto rows = std::ranges::count_if(
        *read, [](const std::string& line) { return line.find_first_not_of(' ') != std::string::npos; });
    require(std::ssize(pairs->source) == rows && std::ssize(pairs->target) == rows && std::ssize(pairs->lines) == rows,
            "every line that is not blank is a pair");
    for (const std::string& source : pairs->source)
      require(source.find('\t') == std::string::npos, "the source of a pair ends at the tab");
  }
  const TableOptions commas = {.columns = 3, .more = true, .delimiter = ',', .skip_lines = 1};
  if (const auto table = accepted([&] { return read_table(plain.path(), commas); }))
    for (const auto& column : *table)
      require(column.size() == table->front().size() && column.size() <= read->size(), "every column has every row");
  const auto split = split_text(std::string(input), 0.5);
  require(split.training + split.validation == input, "the two splits of a text are the text");
}

}  // namespace xtape::fuzz
