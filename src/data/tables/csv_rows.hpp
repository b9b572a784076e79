/// Makes tables of rows that were read before.
#pragma once

#include <string>
#include <vector>

#include "data/tables/fields.hpp"
#include "xtape/array_batches.hpp"

namespace xtape {

/// Like read_csv, but from rows of the file `path`, of which the first one is the header if the options have one.
CsvTable table_of_rows(const std::string& path, const std::vector<FieldRow>& rows, const CsvOptions& options);

/// Like read_array_rows, but from rows as in table_of_rows. Reads only the columns of `inputs`, unless an input is "*".
ArrayRows array_rows_of_fields(const std::string& path, const std::vector<FieldRow>& rows,
                               const std::vector<ArrayInput>& inputs, const CsvOptions& options);

}  // namespace xtape
