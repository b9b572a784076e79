/// Reads tables whose files are read in parts.
#pragma once

#include <string>
#include <vector>

#include "xtape/array_batches.hpp"

namespace xtape {

/// Like read_csv, but from lines of the file `path`: its header, if the options have one, and further lines. `skipped`
/// lines of the file are missing before the further lines. Errors use the line numbers of the file.
CsvTable table_of_lines(const std::string& path, std::vector<std::string> lines, std::size_t skipped,
                        const CsvOptions& options);

/// Like read_array_rows, but from lines as in table_of_lines. Reads only the columns of `inputs`, unless an input is
/// "*".
ArrayRows array_rows_of_lines(const std::string& path, std::vector<std::string> lines, std::size_t skipped,
                              const std::vector<ArrayInput>& inputs, const CsvOptions& options);

}  // namespace xtape
