// Lines of plain and compressed files; the texts in a file.
#include <zlib.h>

#include "target.hpp"
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
}  // namespace

void lines(Input input) {
  const MemoryFile plain(input);
  const auto read = accepted([&] { return read_lines(plain.path()); });
  const bool is_gzip = input.size() > 1 && input[0] == '\x1F' && input[1] == '\x8B';
  require(read || is_gzip, "any plain file has lines");
  if (!is_gzip) {
    std::string joined, expected;
    for (const std::string& line : *read) {
      require(line.find('\n') == std::string::npos, "a line contains no line end");
      joined += line + "\n";
    }
    for (std::size_t i = 0; i < input.size(); ++i)
      if (input[i] != '\r' || (i + 1 < input.size() && input[i + 1] != '\n')) expected += input[i];
    if (!input.empty() && input.back() != '\n') expected += '\n';
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
    require(pairs->source.size() == read->size() && pairs->target.size() == read->size(), "every line is a pair");
    for (const std::string& source : pairs->source)
      require(source.find('\t') == std::string::npos, "the source of a pair ends at the tab");
  }
  const TableOptions commas = {.columns = 3, .more = true, .delimiter = ',', .skip_lines = 1};
  if (const auto table = accepted([&] { return read_table(plain.path(), commas); }))
    for (const auto& column : *table)
      require(column.size() == (read->empty() ? 0 : read->size() - 1), "every line except the header is a row");
  const auto split = split_text(std::string(input), 0.5);
  require(split.training + split.validation == input, "the two splits of a text are the text");
}

}  // namespace xtape::fuzz
