#include "fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "xtape/error.hpp"

namespace xtape {

std::string shown(const std::string& text) {
  constexpr std::size_t most = 100;
  return "'" + (text.size() > most ? text.substr(0, most) + "…" : text) + "'";
}

std::vector<std::string> fields_of(const std::string& line, char delimiter, std::size_t most) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    std::string field;
    if (delimiter != '\t' && at < line.size() && line[at] == '"') {
      for (++at; at < line.size() && (line[at] != '"' || line.compare(at, 2, "\"\"") == 0); ++at) {
        if (line[at] == '"') ++at;
        field += line[at];
      }
      if (at == line.size()) throw Error("a quotation mark is not closed");
      ++at;
    }
    const std::size_t end = fields.size() == most ? line.size() : std::min(line.find(delimiter, at), line.size());
    fields.push_back(field + line.substr(at, end - at));
    if (end == line.size()) return fields;
    at = end + 1;
  }
}

template <class T>
T number_of(const std::string& text) {
  T number = 0;
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t last = text.find_last_not_of(' ') + 1;
  const char *begin = text.data() + first, *finish = text.data() + std::max(first, last);
  std::from_chars_result read = std::from_chars(begin, finish, number);
  // a number such as 1e-50, which is 0 as a float
  if (sizeof(T) < sizeof(double) && read.ec == std::errc::result_out_of_range) {
    double wide = 0;
    read = std::from_chars(begin, finish, wide);
    number = static_cast<T>(wide);
  }
  if (read.ec != std::errc() || read.ptr != text.data() + last || !std::isfinite(number))
    throw Error(shown(text) + " is not a finite number");
  return number;
}

template float number_of(const std::string&);
template double number_of(const std::string&);

}  // namespace xtape
