// Reads the sections "data" and "batch" of a recipe.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ranks/shard_tree.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
using Data = Recipe::Data;

void read_split(Section& section, Data& data) {
  section.read("split", data.split,
               {std::numeric_limits<double>::denorm_min(), std::nextafter(1, 2),
                "above 0 and at most 1: the fraction of the data that is the training split"});
  if (!data.has_rows()) return;
  section.read("held_out", data.held_out, {.low = 1});
  section.exclude("held_out", "split");
}

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
      section.fail(key, "must be one file: only texts, documents, pairs, tables and tags may have several");
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
  const std::string key = data.files_key();
  data.training = read_files(section, data, key, "");
  if (data.training.empty())
    section.fail("", "needs the key '" + key + "', a file" +
                         (data.has_pairs() ? " of lines source<TAB>target, or 'source' and 'target', two files" : "") +
                         ": use --set data." + key + "=FILE");
  data.validation = read_files(section, data, key, "validation_");
  data.test = read_files(section, data, key, "test_");
  read_split(section, data);
}

void text_data(Section& section, Data& data) {
  section.read("block_size", data.block_size, {1, longest_row});
  section.read("windows", data.consecutive, {"random", "consecutive"});
}

void document_data(Section& section, Data& data) {
  bool lines = false;
  section.read("separator", lines, {"blank_line", "line"});
  data.separator = lines ? DocumentEnd::line : DocumentEnd::blank_line;
  section.read("prompt_end", data.prompt_end);
}

/// Returns a column that a recipe describes by one word. Fails if data of this kind cannot have such a column.
Column column_of(Section& section, const std::string& name, const Json& value, const Data& data) {
  using Kind = Column::Kind;
  const bool tags = data.kind == "tags";
  if (value == "skip") return {""};
  if (value == "text") return {name, Kind::text};
  if (tags && value == "tags") return {name, Kind::tags};
  if (!tags && value == "label") return {name, Kind::label};
  if (!tags && value == "number") return {name, Kind::number};
  if (tags || !value.is_object() || value.size() != 1 || !value.contains("numbers"))
    section.fail(name, std::string("must be \"text\", ") +
                           (tags ? R"("tags")" : R"("label", "number", {"numbers": COUNT})") + " or \"skip\", not " +
                           value.dump());
  Column column = {name, Kind::number};
  section.section(name).read("numbers", column.width, {1, 1 << 16});
  return column;
}

/// Reads the columns of a table, in the order of its fields.
void read_columns(Section section, Data& data) {
  using Kind = Column::Kind;
  data.table.columns = 0;
  for (const auto& [name, value] : section.json().items()) {
    Column column = column_of(section, name, value, data);
    const auto labels = [](const Column& each) { return each.kind == Kind::label; };
    if (column.kind == Kind::label && std::ranges::any_of(data.columns, labels))
      section.fail(name, "is a second column of labels: a table can have only one");
    data.table.columns += static_cast<std::size_t>(std::max<std::int64_t>(1, column.width));
    data.columns.push_back(std::move(column));
  }
  const auto named = [](const Column& each) { return !each.name.empty(); };
  if (std::ranges::none_of(data.columns, named)) section.fail("", "must have a column to read");
}

/// Reads the character between the fields of a line.
void read_delimiter(Section& section, std::string usual, char& delimiter) {
  section.read("delimiter", usual);
  if (usual.size() != 1) section.fail("delimiter", "must be one character, such as \",\" or \"\\t\"");
  delimiter = usual[0];
}

void read_header(Section& section, Data& data) {
  bool header = false;
  section.read("header", header);
  data.table.skip_lines = header ? 1 : 0;
}

/// Reads data of lines with a word and its tag. The recipe may declare other columns.
void tags_data(Section& section, Data& data) {
  data.columns = {{"tokens", Column::Kind::text}, {"tags", Column::Kind::tags}};
  if (section.has("columns")) {
    data.columns.clear();
    read_columns(section.section("columns"), data);
    for (const auto& [kind, name] : {std::pair(Column::Kind::text, "text"), {Column::Kind::tags, "tags"}})
      if (std::ranges::count_if(data.columns, [wanted = kind](const Column& each) {
            return !each.name.empty() && each.kind == wanted;
          }) != 1)
        section.fail("columns", std::string("must have one column \"") + name + "\"");
  }
  data.table.columns = data.columns.size();
  read_delimiter(section, " ", data.table.delimiter);
  read_header(section, data);
}

void table_data(Section& section, Data& data) {
  section.need({"columns"});
  read_columns(section.section("columns"), data);
  read_delimiter(section, data.training[0][0].find(".csv") != std::string::npos ? "," : "\t", data.table.delimiter);
  read_header(section, data);
}

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

void array_data(Section& section, Data& data) {
  Section inputs = section.section("inputs");
  for (const auto& [name, value] : inputs.json().items()) data.inputs.push_back(read_input(inputs, name, value));
  const auto labelled = [](const ArrayInput& input) { return input.labels; };
  if (std::ranges::count_if(data.inputs, labelled) > 1) section.fail("inputs", "can have labels once");
  const std::string& file = data.training[0][0];
  if (file.ends_with(".npz") || file.ends_with(".safetensors")) return;
  if (data.inputs.empty())
    section.fail("",
                 R"(needs the key 'inputs' for a file of comma-separated values, such as {"x": "*", "y": "price"})");
  read_delimiter(section, file.find(".tsv") != std::string::npos ? "\t" : ",", data.csv.separator);
  section.read("header", data.csv.header);
  section.read("missing", data.csv.missing);
  section.read("max_line", data.reading.max_line);
  data.csv.reading = data.reading;
}

/// Reads removed kinds of data, which only earlier versions could generate. Runs on such data still support everything
/// that needs no data. Returns false if the kind is not a removed one.
bool read_no_more(const Section& section, Data& data) {
  const auto count = [&](const char* key, std::int64_t otherwise) {
    const auto found = section.json().find(key);
    return found != section.json().end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
  };
  const bool sums = data.kind == "adder";
  if (!is_removed_kind(data.kind)) return false;
  const std::string begin = "data of kind '" + data.kind + "' is no longer generated here: ";
  const std::int64_t first = sums ? count("digits", 2) : count("training", 100000);
  const std::string arguments = " FOLDER " + std::to_string(first) + " " + std::to_string(count("held_out", 2000));
  if (sums) {
    data.no_more = begin + "examples/data/sums" + arguments +
                   " writes its files. The recipe 'adder' trains on them: --set data.folder=FOLDER";
    data.kind = "text";
    data.block_size = 3 * std::clamp<std::int64_t>(first, 1, 3) + 3;
  } else {
    data.no_more = begin + "examples/data/" + data.kind + arguments +
                   R"( writes its files; --set 'data={"kind": "pairs", "folder": "FOLDER", "pairs": "training.tsv", )" +
                   R"("validation_pairs": "validation.tsv"}' reads them)";
    data.kind = "pairs";
  }
  return true;
}
}  // namespace

bool is_removed_kind(const Json& kind) {
  return kind == "adder" || kind == "number_words" || kind == "dates";
}

Recipe::Data read_data(Section section) {
  Data data;
  data.reading.max_line = usual_max_line;
  section.need({"kind"});
  section.read("kind", data.kind);
  if (read_no_more(section, data)) return data;
  if (data.kind == "parallel")  // the former name, which recipes of old runs contain
    data.kind = "pairs";
  else
    section.read("kind", data.kind, {"text", "documents", "pairs", "table", "tags", "images", "arrays"});
  read_all_files(section, data);
  if (!data.has_tokens()) {
    data.has_images() ? read_image_data(section, data) : array_data(section, data);
    section.done();
    return data;
  }
  section.read("max_line", data.reading.max_line);
  data.table.reading = data.reading;
  if (data.kind == "text") text_data(section, data);
  if (data.kind == "documents") document_data(section, data);
  if (data.kind == "table") table_data(section, data);
  if (data.kind == "tags") tags_data(section, data);
  if (data.has_rows()) {
    section.read("max_length", data.max_length, {0, longest_row});
    section.read("longest_row", data.longest_row, {0, most_batch_tokens});
  }
  section.done();
  return data;
}

std::vector<std::string> data_names(const Recipe::Data& data) {
  if (data.has_images()) return {"labels", "channels", "height", "width"};
  if (data.has_arrays()) {
    if (data.inputs.empty()) return {};  // the arrays of the file
    std::vector<std::string> names = {"labels"};
    for (const ArrayInput& input : data.inputs) names.push_back(input.name);
    return names;
  }
  std::vector<std::string> names = {"vocabulary", "columns"};
  if (data.has_pairs()) names.insert(names.end(), {"source_vocabulary", "target_vocabulary"});
  for (const Column& column : data.columns)
    if (column.kind == Column::Kind::label || column.kind == Column::Kind::tags) names.emplace_back("labels");
  return names;
}

void read_batch(Section section, Recipe& recipe) {
  // A row of text has block_size tokens. For other data, the length of rows is not known until the data is read.
  const bool rows = recipe.data.has_rows() && recipe.data.has_tokens();
  if (!rows) section.need({"size"});
  const std::int64_t tokens = recipe.data.has_rows() ? 1 : recipe.data.block_size;  // minimum number of tokens in a row
  section.read("size", recipe.batch_size, {section.has("tokens") ? 0 : 1, most_batch_tokens / tokens});
  if (rows) {
    section.read("tokens", recipe.batch_tokens, {0, most_batch_tokens});
    section.read("bucket", recipe.bucket, {1, longest_row});
    if ((recipe.batch_size > 0) == (recipe.batch_tokens > 0))
      section.fail("", "needs either the key 'size' (rows) or 'tokens' (of a text), at least 1");
  }
  section.read("accumulate", recipe.trainer.accumulate, {.low = 1, .high = ranks::most_micro_batches});
  section.read("shards", recipe.trainer.shards, {.low = 1, .high = ranks::most_shards});
  section.done();
}

}  // namespace xtape::train
