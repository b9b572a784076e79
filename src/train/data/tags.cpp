// Data of kind "tags": a row is a sentence with a label for each word. A line of the file has a word and its label.
#include <algorithm>

#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
using Kind = Column::Kind;

struct TagData final : DataKind {
  TagData()
      : DataKind({.name = "tags",
                  .task = Task::words,
                  .row = ", sentence from line ",
                  .columns = {{"tokens", Kind::text}, {"tags", Kind::tags}}}) {
    using Data = Recipe::Data;
    keys = {{{file_key("tags", "a file or several, with a word and its label in each line"),
              {"columns", "section", "the word and its label", "the inputs that the fields of a line feed, in order",
               read_all_columns},
              delimiter_key("a space", {"", ' ', ' '}, part(&Data::table, &TableOptions::delimiter)),
              header_key(),
              fields_key()}}};
  }

  static Column column_of(Section& section, const std::string& name, const Json& value) {
    if (value == "skip") return {""};
    if (value == "text") return {name, Kind::text};
    if (value != "tags") section.fail(name, R"(must be "text", "tags" or "skip", not )" + value.dump());
    return {name, Kind::tags};
  }

  static void read_all_columns(Section& section, const std::string& name, Recipe::Data& data) {
    if (section.has(name)) read_columns(section.section(name), column_of, data);
    for (const auto& [kind, word] : {std::pair(Kind::text, "text"), {Kind::tags, "tags"}})
      if (std::ranges::count_if(data.columns, [wanted = kind](const Column& each) {
            return !each.name.empty() && each.kind == wanted;
          }) != 1)
        section.fail(name, std::string("must have one column \"") + word + "\"");
    data.table.columns = data.columns.size();
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    if (!data.fields.empty()) return DataKind::read(data, part, split);
    SentenceTexts sentences = read_sentences(part.files[0], data.table);
    append(std::move(sentences.columns), split.columns);
    part.lines = std::move(sentences.lines);
  }
};
}  // namespace

const DataKind& tag_data() {
  static const TagData kind;
  return kind;
}

}  // namespace xtape::train
