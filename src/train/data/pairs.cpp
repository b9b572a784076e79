// Data of kind "pairs": a row is a sentence and its translation.
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
struct PairData final : DataKind {
  PairData()
      : DataKind({.name = "pairs",
                  .task = Task::translations,
                  .title = "sentence pairs",
                  .columns = {{"source", Column::Kind::text}, {"target", Column::Kind::target}}}) {
    keys = {{{file_key("pairs", "files of lines source`<TAB>`target"),
              file_key("source", "files of sources, one in each line; replaces `pairs`, with `target`"),
              file_key("target", "files of targets"), fields_key()}}};
  }

  std::vector<std::string> size_names(const Recipe::Data& data) const override {
    std::vector<std::string> names = DataKind::size_names(data);
    names.insert(names.end(), {"source_vocabulary", "target_vocabulary"});
    return names;
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    const std::vector<std::string>& files = part.files;
    if (!data.fields.empty() && files.size() == 1) return DataKind::read(data, part, split);
    PairTexts pairs =
        files.size() == 1 ? read_pairs(files[0], data.reading) : read_pairs(files[0], files[1], data.reading);
    append({std::move(pairs.source), std::move(pairs.target)}, split.columns);
    part.lines = std::move(pairs.lines);
  }

  PairTexts answers(const Recipe::Data&, const DataSplit& split) const override {
    return {split.columns[0], split.columns[1]};
  }
};
}  // namespace

const DataKind& pair_data() {
  static const PairData kind;
  return kind;
}

}  // namespace xtape::train
