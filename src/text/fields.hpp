/// Splits lines of tables into fields, and reads numbers from fields.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// Quotes a field for messages. Shows at most 100 bytes.
std::string shown(const std::string& text);

/// Returns the first `most` fields of a line. If there are more fields, the rest of the line is one additional element.
/// Fields may be quoted as in CSV (RFC 4180, without line ends in fields), except if the delimiter is a tab. Throws
/// Error if a quotation mark is not closed.
std::vector<std::string> fields_of(const std::string& line, char delimiter, std::size_t most);

/// Returns the number in a field as T (float or double). Ignores spaces around the number. Throws Error if the field is
/// not a finite number.
template <class T>
T number_of(const std::string& text);

}  // namespace xtape
