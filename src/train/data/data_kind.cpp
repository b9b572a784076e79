// The list of the kinds of data, and what their keys have in common: files and splits.
#include "train/data/data_kind.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/messages/wording.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape {

using train::Task;

bool Recipe::Data::has_pairs() const {
  return train::kind_of(*this).task == Task::translations;
}
bool Recipe::Data::has_tokens() const {
  return train::kind_of(*this).has_tokens;
}
bool Recipe::Data::has_rows() const {
  return train::kind_of(*this).has_rows;
}

}  // namespace xtape

namespace xtape::train {

std::array<const DataKind*, 9> data_kinds() {
  return {&text_data(),  &document_data(), &chat_data(),  &preference_data(), &pair_data(),
          &table_data(), &tag_data(),      &image_data(), &array_data()};
}

const DataKind& kind_of(const Recipe::Data& data) {
  for (const DataKind* kind : data_kinds())
    if (data.kind == kind->name) return *kind;
  throw Error("the recipe has no data: Recipe::load reads a whole one");
}

void relabel(std::int64_t* labels, std::size_t rows, const std::vector<std::string>& names,
             const std::vector<std::string>& known, const std::function<std::string(std::size_t)>& place) {
  for (std::size_t i = 0; i < rows; ++i) {
    if (labels[i] < 0) continue;
    const std::string& label = names[static_cast<std::size_t>(labels[i])];
    const auto found = std::ranges::find(known, label);
    if (found == known.end()) throw Error(place(i) + ": the training split has no label '" + label + "'");
    labels[i] = found - known.begin();
  }
}

std::size_t rows_kept(const Recipe::Data& data, const DataSplit& training, DataSplit& validation) {
  const std::size_t count = training.size();
  const auto held_out = static_cast<std::size_t>(data.held_out);
  validation.skipped = held_out == 0      ? static_cast<std::size_t>(static_cast<double>(count) * data.split)
                       : held_out < count ? count - held_out
                                          : 0;
  return validation.skipped;
}

namespace {
using Data = Recipe::Data;

/// Returns the file or the list of files under a key, or an empty list if the key is missing.
std::vector<std::string> read_list(Section& section, const Data& data, const std::string& key) {
  std::string folder;
  section.read("folder", folder);
  std::vector<std::string> files;
  if (!section.has(key)) return files;
  if (!section.value(key).is_array()) {
    section.read(key, files.emplace_back());
  } else {
    if (!data.has_tokens())
      section.fail(
          key, "must be one file: only texts, documents, chats, preferences, pairs, tables and tags may have several");
    section.read(key, files);
    if (files.empty()) section.fail(key, "must be a file, or a list with at least one, not []");
  }
  for (std::string& file : files)
    if (file != standard_input) file = (std::filesystem::path(folder) / file).string();
  return files;
}

/// Returns the files of a split ("", "validation_" or "test_"). They are under the key of the kind. For pairs, they are
/// under "source" and "target".
Data::Files read_files(Section& section, const Data& data, const std::string& key, const std::string& part) {
  Data::Files files;
  for (const std::string& file : read_list(section, data, part + key)) files.push_back({file});
  if (!data.has_pairs()) return files;
  const std::string source = part + "source", target = part + "target";
  section.exclude(source, part + key);
  if (section.has(source) || section.has(target)) section.need({source, target});
  const std::vector<std::string> sources = read_list(section, data, source), targets = read_list(section, data, target);
  if (sources.size() != targets.size())
    section.fail(target, "must have as many files as '" + source + "', " + std::to_string(sources.size()) + ", not " +
                             std::to_string(targets.size()));
  for (std::size_t i = 0; i < sources.size(); ++i) files.push_back({sources[i], targets[i]});
  return files;
}

void read_all_files(Section& section, Data& data) {
  const std::string key = kind_of(data).files;
  data.training = read_files(section, data, key, "");
  if (data.training.empty())
    section.fail("", "needs the key '" + key + "', a file" +
                         (data.has_pairs() ? " of lines source<TAB>target, or 'source' and 'target', two files" : "") +
                         ": use --set data." + key + "=FILE");
  data.validation = read_files(section, data, key, "validation_");
  data.test = read_files(section, data, key, "test_");
}
}  // namespace

const Keys<Data>& data_keys() {
  const auto names = [] {
    Names names;
    for (const DataKind* kind : data_kinds()) names.emplace_back(kind->name);
    return names;
  };
  static const Keys<Data> keys = {
      {{{"kind", &Data::kind, "the kind of the data", names(), needed},
        {"folder", "string", "", "the directory of all files of the data", [](auto&&...) {}, a_path, may_change},
        {"split", &Data::split, "without a validation file: the fraction, from the beginning, that trains",
         Bounds{std::numeric_limits<double>::denorm_min(), std::nextafter(1, 2),
                "above 0 and at most 1: the fraction of the data that is the training split"},
         may_change}}},
      {{{"held_out", &Data::held_out, "the number of rows at the end that validate; replaces `split`", Range{.low = 1},
         may_change}},
       "rows",
       &Data::has_rows},
      {{max_line_key()}, "texts", &Data::has_tokens},
      {{{"max_length", &Data::max_length, "rows with a longer text (in tokens) do not train; 0: no limit",
         Range{0, longest_row}, may_change},
        {"longest_row", &Data::longest_row, "", Range{0, most_batch_tokens}}},
       nullptr,
       [](const Data& data) { return data.has_rows() && data.has_tokens(); }}};
  return keys;
}

void read_data(Section section, Recipe& recipe) {
  Data& data = recipe.data;
  data.reading.max_line = usual_max_line;
  read_keys(section, data_keys(), data);
  section.exclude("held_out", "split");
  read_all_files(section, data);
  data.columns = kind_of(data).columns;
  data.table.reading = data.reading;
  read_keys(section, kind_of(data).keys, data);
  kind_of(data).finish(section, recipe);
  section.done();
}

Key<Data> file_key(const char* name, const char* doc, const char* values) {
  return {name, values, "", doc, [](auto&&...) {}, of_data_files, may_change};
}

Key<Data> max_line_key() {
  return {"max_line", part(&Data::reading, &ReadOptions::max_line),
          "the maximum bytes of a line; 0: no limit, as for text8, which is one line", otherwise("`16777216`"),
          may_change};
}

Key<Data> delimiter_key(const char* initial, UsualDelimiter usual, std::function<char&(Data&)> target) {
  const auto read = [=](Section& section, const std::string& name, Data& data) {
    const bool of_file = data.training[0][0].find(usual.file) != std::string::npos;
    std::string delimiter(1, of_file ? usual.delimiter : usual.otherwise);
    section.read(name, delimiter);
    if (delimiter.size() != 1) section.fail(name, "must be one character, such as \",\" or \"\\t\"");
    target(data) = delimiter[0];
  };
  return {"delimiter", "one character", initial, "the character between fields", read, may_change};
}

}  // namespace xtape::train
