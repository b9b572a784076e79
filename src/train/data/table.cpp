// Data of kind "table": a row has fields, which are texts, numbers or a label.
#include "data/tables/fields.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
using Kind = Column::Kind;

struct TableData final : DataKind {
  TableData() : DataKind({.name = "table", .task = Task::rows, .title = "a table"}) {
    using Data = Recipe::Data;
    keys = {
        {{file_key("table", "a file or several"),
          {"columns", "section", "", "the inputs that the fields of a line feed, in order", read_all_columns, needed},
          delimiter_key("a comma for .csv files, a tab for others", {".csv", ',', '\t'},
                        part(&Data::table, &TableOptions::delimiter)),
          header_key(),
          fields_key()}}};
  }

  static Column column_of(Section& section, const std::string& name, const Json& value) {
    if (value == "skip") return {""};
    if (value == "text") return {name, Kind::text};
    if (value == "label") return {name, Kind::label};
    Column column = {name, Kind::number};
    if (value == "number") return column;
    if (!value.is_object() || value.size() != 1 || !value.contains("numbers"))
      section.fail(name, R"(must be "text", "label", "number", {"numbers": COUNT} or "skip", not )" + value.dump());
    section.section(name).read("numbers", column.width, {1, 1 << 16});
    return column;
  }

  static void read_all_columns(Section& section, const std::string& name, Recipe::Data& data) {
    read_columns(section.section(name), column_of, data);
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    if (!data.fields.empty()) return DataKind::read(data, part, split);
    RowTexts rows = read_rows(part.files[0], data.table);
    for_each_column(data, [&](const Column& column, std::size_t field) {
      if (column.kind == Kind::label)
        for (std::string& label : rows.columns[field]) label = trimmed(label);
    });
    append(std::move(rows.columns), split.columns);
    part.lines = std::move(rows.lines);
  }
};
}  // namespace

const DataKind& table_data() {
  static const TableData kind;
  return kind;
}

}  // namespace xtape::train
