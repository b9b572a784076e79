/// Rows in files of JSON Lines: each line is an object, whose fields are the row's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tables/fields.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// A field to read from each line. A value becomes texts, as in a file of fields.
struct JsonField {
  std::string path;       ///< The key of the field, or keys separated by dots: "translation.de".
  std::size_t width = 0;  ///< If above 0, the value is a list of this many values, each of which becomes a text.
  bool words = false;     ///< Whether the value is a list of words without spaces. They are joined by spaces.
};

/// Calls take(row, line) for each object of a file and the number of its line. Blank lines are no rows. Throws
/// FileError with the line if a line is not an object in JSON. Errors of read_text propagate.
void for_each_object(const std::string& path, const ReadOptions& options,
                     const std::function<void(const JsonNode& row, std::size_t line)>& take);

/// Returns the value under a key, or under keys separated by dots. A key that has dots itself is found, too. Throws
/// FileError with the line, and suggests the nearest key, if there is none.
JsonNode at_path(const JsonNode& row, const std::string& path);

/// Returns the texts of the fields by column: a field with a width has as many columns. A text is a string, the
/// spelling of a number, true or false. Throws FileError with the line if a value is missing or has another type.
RowTexts read_json_lines(const std::string& path, const std::vector<JsonField>& fields, const ReadOptions& options);

}  // namespace xtape
