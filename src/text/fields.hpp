/// The fields of lines of tables, and their numbers.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// Quotes a field for messages, at most 100 bytes of it.
std::string shown(const std::string& text);

/// The first `most` fields of a line; if there are more, the rest of the line is one more element. Unless the delimiter
/// is a tab, fields may be quoted as in CSV (RFC 4180, without line ends in fields). Throws Error if a quotation mark
/// is not closed.
std::vector<std::string> fields_of(const std::string& line, char delimiter, std::size_t most);

/// The number that a field is, spaces around it aside: a float or double. Throws Error if it is not a finite number.
template <class T>
T number_of(const std::string& text);

}  // namespace xtape
