/// Tables whose files are read in parts.
#pragma once

#include <string>
#include <vector>

#include "xtape/array_batches.hpp"

namespace xtape {

/// As read_csv, from lines of the file `path`: its header, if the options have one, and lines before which there are
/// `skipped` others. Errors name the lines of the file.
CsvTable table_of_lines(const std::string& path, std::vector<std::string> lines, std::size_t skipped,
                        const CsvOptions& options);

/// As read_array_rows, from such lines. Other columns than those of `inputs` are not read, unless an input is "*".
ArrayRows array_rows_of_lines(const std::string& path, std::vector<std::string> lines, std::size_t skipped,
                              const std::vector<ArrayInput>& inputs, const CsvOptions& options);

}  // namespace xtape
