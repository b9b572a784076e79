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

HeldOut hold_out(const Recipe::Data& data, DataSplit& training, DataSplit& validation) {
  const auto count = static_cast<std::int64_t>(training.size());
  HeldOut rows = {0, count};
  if (data.folds > 0) {
    if (data.folds > count)
      throw Error("'data.folds' is " + std::to_string(data.folds) + ", but there are only " + std::to_string(count) +
                  " rows");
    // The first folds have one row more than the others if the rows do not divide evenly, as in scikit-learn's KFold.
    const auto begin = [&](std::int64_t fold) {
      return fold * (count / data.folds) + std::min(fold, count % data.folds);
    };
    rows = {begin(data.fold - 1), begin(data.fold)};
  } else if (data.held_out == 0) {
    rows.begin = static_cast<std::int64_t>(static_cast<double>(count) * data.split);
  } else {
    rows.begin = std::max<std::int64_t>(0, count - data.held_out);
  }
  const auto begin = static_cast<std::size_t>(rows.begin), end = static_cast<std::size_t>(rows.end);
  training.numbers = {begin, end - begin};
  validation.numbers = {0, begin};
  return rows;
}

namespace {
using Data = Recipe::Data;

/// The folder of the files, and what is read of the data already.
struct Place {
  std::string folder;
  const Data& data;
};

/// Returns the file or the list of files under a key, or an empty list if the key is missing.
std::vector<std::string> read_list(Section& section, const Place& place, const std::string& key) {
  std::vector<std::string> files;
  if (section.value(key).is_null()) return files;
  if (!section.value(key).is_array()) {
    section.read(key, files.emplace_back());
  } else {
    if (!place.data.has_tokens())
      section.fail(
          key, "must be one file: only texts, documents, chats, preferences, pairs, tables and tags may have several");
    section.read(key, files);
    if (files.empty()) section.fail(key, "must be a file, or a list with at least one, not []");
  }
  for (std::string& file : files)
    if (file != standard_input) file = (std::filesystem::path(place.folder) / file).string();
  return files;
}

/// Returns the files of a split ("", "validation_" or "test_"). They are under the key of the kind. For pairs, they are
/// under "source" and "target".
Data::Files read_files(Section& section, const Place& place, const std::string& key, const std::string& part) {
  Data::Files files;
  for (const std::string& file : read_list(section, place, part + key)) files.push_back({file});
  if (!place.data.has_pairs()) return files;
  const std::string source = part + "source", target = part + "target";
  section.exclude(source, part + key);
  if (section.has(source) || section.has(target)) section.need({source, target});
  const std::vector<std::string> sources = read_list(section, place, source),
                                 targets = read_list(section, place, target);
  if (sources.size() != targets.size())
    section.fail(target, "must have as many files as '" + source + "', " + std::to_string(sources.size()) + ", not " +
                             std::to_string(targets.size()));
  for (std::size_t i = 0; i < sources.size(); ++i) files.push_back({sources[i], targets[i]});
  return files;
}

/// Reads the further validation sets, each the files of a split or a section with the keys of these.
void read_sets(Section& section, const Place& place, const std::string& key, Data& data) {
  if (section.has("validation") && !section.value("validation").is_object())
    section.fail("validation",
                 "must be a section of named sets, such as {\"news\": \"news.txt\"}; the file of the "
                 "validation split is 'validation_" +
                     key + "'");
  Section sets = section.section("validation");
  for (const auto& [name, value] : sets.json().items()) {
    if (name.empty() || name == test_split || name.find_first_of("./ ") != std::string::npos)
      sets.fail(name, "is not the name of a set: it is a word without '.' and '/', and not \"test\"");
    Data::Files files;
    if (value.is_object()) {
      Section own = sets.section(name);
      files = read_files(own, place, key, "");
      own.done();
    } else {
      for (const std::string& file : read_list(sets, place, name)) files.push_back({file});
    }
    if (files.empty()) sets.fail(name, "needs a file");
    data.sets.emplace_back(name, files);
  }
}

void read_all_files(Section& section, Data& data) {
  const std::string key = kind_of(data).files;
  Place place{"", data};
  section.read("folder", place.folder);
  data.training = read_files(section, place, key, "");
  if (data.training.empty())
    section.fail("", "needs the key '" + key + "', a file" +
                         (data.has_pairs() ? " of lines source<TAB>target, or 'source' and 'target', two files" : "") +
                         ": use --set data." + key + "=FILE");
  data.validation = read_files(section, place, key, "validation_");
  data.test = read_files(section, place, key, "test_");
  read_sets(section, place, key, data);
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
         may_change},
        {"validation", "section", "",
         "further validation sets by name, each a file, a list of files, or a section with the keys of the files: "
         "`{\"news\": \"news.txt\"}`",
         [](auto&&...) {}, of_data_files, may_change}}},
      {{{"held_out", &Data::held_out, "the number of rows at the end that validate; replaces `split`", Range{.low = 1},
         may_change},
        {"folds", &Data::folds,
         "the data is divided into this many folds of neighbouring rows, of which one validates; replaces `split`. "
         "`xtape sweep` trains one run for each",
         Range{.low = 2}},
        {"fold", &Data::fold, "with `folds`: the one that validates", Range{.low = 1}}},
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
  if (section.has("folds") && !data.has_rows())
    section.fail("folds",
                 "needs rows, which one long text does not have; data of kind \"documents\" has a row for each text");
  if (data.folds > 0) {
    for (const char* other : {"split", "held_out"}) section.exclude("folds", other);
    if (!data.validation.empty()) section.fail("folds", "divides the training files: there is a validation file, too");
  }
  if (data.fold > std::max<std::int64_t>(1, data.folds))
    section.fail("fold", data.folds == 0 ? "needs 'folds'" : "must be at most 'folds', " + std::to_string(data.folds));
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
