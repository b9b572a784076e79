// Data of kind "arrays": row i has element i of each array of a file, or line i of a CSV file.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "data/tables/fields.hpp"
#include "train/data/data_kind.hpp"
#include "train/trainer/carried.hpp"

namespace xtape::train {

namespace {
/// Reads an input of arrays: the name of an array or column, a list of columns, "*", or {"labels": column}.
ArrayInput read_input(Section& section, const std::string& name, const Json& value) {
  ArrayInput input{name, {}, value.is_array() || value == "*", false};
  const Json& column = value.is_object() && value.size() == 1 && value.contains("labels") ? value["labels"] : value;
  input.labels = &column != &value;
  for (const Json& each : column.is_array() ? column : Json::array({column})) {
    if (each.is_number_unsigned()) {  // a number names a column of a table without a header
      input.columns.push_back(each.dump());
      continue;
    }
    if (!each.is_string())
      section.fail(name,
                   R"(must be the name of an array or column, a list of columns, "*" or {"labels": COLUMN}, not )" +
                       value.dump());
    input.columns.push_back(each);
  }
  if (input.columns.empty() || (input.labels && column.is_array()))
    section.fail(name, "must name " + std::string(input.labels ? "one column" : "a column") + ", not " + value.dump());
  return input;
}

/// Returns the rows with their labels as indices in `names`.
ArrayRows labelled_as(ArrayRows rows, const std::vector<std::string>& names) {
  if (rows.labelled.empty()) return rows;
  Array indices = rows.arrays.at(rows.labelled).clone();
  relabel(indices.as<std::int64_t>(), rows.size(), rows.labels, names,
          [&](std::size_t row) { return rows.place(row); });
  rows.arrays.set(rows.labelled, indices);
  rows.labels = names;
  return rows;
}

/// Returns the rows of an array before `begin` and from `end` on.
Array without(const Array& array, std::int64_t begin, std::int64_t end) {
  Shape shape = array.shape();
  shape[0] -= end - begin;
  Array rest(array.dtype(), shape);
  if (begin > 0) set_part(rest, 0, 0, part_of(array, 0, 0, begin));
  if (begin < shape[0]) set_part(rest, 0, begin, part_of(array, 0, end, array.shape()[0]));
  return rest;
}

struct ArrayData final : DataKind {
  ArrayData()
      : DataKind({.name = "arrays", .task = Task::arrays, .unit = "rows", .has_tokens = false, .may_be_tokens = true}) {
    using Data = Recipe::Data;
    keys = {
        {{file_key("arrays", "a safetensors, .npz or CSV file", "string"),
          {"inputs", "section", "all arrays", "the part of the file that feeds each input of `loss`", read_inputs}}},
        {{delimiter_key("a tab for .tsv files, a comma for others", {".tsv", '\t', ','},
                        part(&Data::csv, &CsvOptions::separator)),
          {"header", part(&Data::csv, &CsvOptions::header), "the first line has names, which are not data", may_change},
          {"missing", part(&Data::csv, &CsvOptions::missing),
           "missing numbers become NaN and missing labels -1, instead of errors", may_change},
          max_line_key()},
         "CSV",
         is_table}};
  }

  static bool is_table(const Recipe::Data& data) {
    const std::string& file = data.training[0][0];
    return !file.ends_with(".npz") && !file.ends_with(".safetensors");
  }

  static void read_inputs(Section& section, const std::string& name, Recipe::Data& data) {
    Section inputs = section.section(name);
    for (const auto& [input, value] : inputs.json().items()) data.inputs.push_back(read_input(inputs, input, value));
    const auto labelled = [](const ArrayInput& input) { return input.labels; };
    if (std::ranges::count_if(data.inputs, labelled) > 1) section.fail(name, "can have labels once");
    if (data.inputs.empty() && is_table(data))
      section.fail("",
                   R"(needs the key 'inputs' for a file of comma-separated values, such as {"x": "*", "y": "price"})");
  }

  void finish(const Section&, Recipe& recipe) const override { recipe.data.csv.reading = recipe.data.reading; }

  std::vector<std::string> size_names(const Recipe::Data& data) const override {
    if (data.inputs.empty()) return {};  // the arrays of the file
    std::vector<std::string> names = {"labels", "vocabulary"};
    for (const ArrayInput& input : data.inputs) names.push_back(input.name);
    return names;
  }

  void add_sizes(const Tokenizers& tokenizers, const Batches& batches, Named<std::int64_t>& sizes) const override {
    for (const auto& [name, array] : batches.blank()) {
      std::int64_t numbers = 1;
      for (std::size_t axis = 1; axis < array.shape().size(); ++axis) numbers *= array.shape()[axis];
      if (!sizes.has(name)) sizes.add(name, numbers);
    }
    if (tokenizers.target && !sizes.has("vocabulary")) sizes.add("vocabulary", tokenizers.target->size());
  }

  /// Reads a file. If it lacks a column that an input names, the error says how to name another one.
  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    try {
      split.arrays = read_array_rows(part.files[0], data.inputs, data.csv);
    } catch (const MissingColumn& error) {
      for (const ArrayInput& input : data.inputs) {
        if (!contains(input.columns, error.column())) continue;
        const std::string key = "data.inputs." + input.name;
        throw FileError(error.what() + std::string("; name another one with --set ") +
                        (input.labels ? key + ".labels=COLUMN"
                         : input.list ? "'" + key + "=[\"COLUMN\"]'"
                                      : key + "=COLUMN"));
      }
      throw;
    }
  }

  void complete(const Recipe&, const Batches&, Json&) const override {}

  void divide(const Recipe::Data& data, DataSplit& training, DataSplit& validation) const override {
    const auto [begin, end] = hold_out(data, training, validation);
    ArrayRows& rows = training.arrays;
    validation.arrays = {{}, rows.labels, rows.labelled, rows.file, validation.numbers};
    rows.numbers = training.numbers;
    BatchArrays shortened;
    for (const auto& [name, array] : rows.arrays) {
      validation.arrays.arrays.add(name, part_of(array, 0, begin, end));
      shortened.add(name, without(array, begin, end));
    }
    rows.arrays = std::move(shortened);
  }

  Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const override {
    const auto named = recipe.tokenizer.kind.empty() ? nullptr : make_tokenizer(recipe, {});
    return {named, named, training.arrays.labels};
  }

  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, const DataSplit& training,
                                   const DataSplit& evaluated) const override {
    return std::make_unique<ArrayBatches>(labelled_as(training.arrays, tokenizers.labels),
                                          labelled_as(evaluated.arrays, tokenizers.labels),
                                          ArrayBatchesOptions{recipe.batch_size, recipe.trainer.seed});
  }
};
}  // namespace

const DataKind& array_data() {
  static const ArrayData kind;
  return kind;
}

}  // namespace xtape::train
