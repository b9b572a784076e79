#include "train/run/run_data.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "base/files/durable.hpp"
#include "base/files/encodings.hpp"
#include "base/files/files.hpp"
#include "base/json/json_text.hpp"
#include "base/memory/process_memory.hpp"
#include "base/messages/wording.hpp"
#include "data/tables/fields.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"
#include "train/trainer/carried.hpp"

namespace xtape::train {

namespace {
constexpr const char* labels_file = "/labels.json";

/// Calls take(column, field) for each column of a table that the run reads. `field` is the index of the column's first
/// field.
template <class Take>
void for_each_column(const Recipe::Data& data, const Take& take) {
  std::size_t field = 0;
  for (const Column& column : data.columns) {
    if (!column.name.empty()) take(column, field);
    field += static_cast<std::size_t>(std::max<std::int64_t>(1, column.width));
  }
}

/// Returns the files of a split as text for errors.
std::string named(const Recipe::Data::Files& files) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& part : files) names.insert(names.end(), part.begin(), part.end());
  return joined(names);
}

/// Reads the arrays of a file. If it lacks a column that an input names, the error says how to name another one.
ArrayRows read_arrays(const std::string& file, const Recipe::Data& data) {
  try {
    return read_array_rows(file, data.inputs, data.csv);
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

/// Appends the rows of one file to the rows of earlier files.
void append(TableTexts more, TableTexts& columns) {
  columns.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i)
    std::move(more[i].begin(), more[i].end(), std::back_inserter(columns[i]));
}

/// Removes the images from index `first` on, and returns them.
Images cut_off(Images& images, std::size_t first) {
  Images rest = {images.shape, {}, {}, images.names, images.files, images.first + first};
  const auto move = [](auto& from, auto& to, std::size_t at) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(at), from.end());
    from.resize(at);
  };
  move(images.pixels, rest.pixels, first * static_cast<std::size_t>(images.shape.pixels()));
  move(images.labels, rest.labels, first);
  if (images.files.size() > 1) move(images.files, rest.files, first);
  return rest;
}

/// Removes the rows of arrays from index `first` on, and returns them.
ArrayRows cut_off(ArrayRows& rows, std::size_t first) {
  ArrayRows rest = {{}, rows.labels, rows.labelled, rows.file, rows.first + first};
  const auto all = std::ssize(rows), kept = static_cast<std::int64_t>(first);
  BatchArrays shortened;
  for (const auto& [name, array] : rows.arrays) {
    rest.arrays.add(name, part_of(array, 0, kept, all));
    shortened.add(name, part_of(array, 0, 0, kept));
  }
  rows.arrays = std::move(shortened);
  return rest;
}

/// Returns the rows with their labels as indices in `names`.
ArrayRows labelled_as(ArrayRows rows, const std::vector<std::string>& names) {
  if (rows.labelled.empty()) return rows;
  Array indices = rows.arrays.at(rows.labelled).clone();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::int64_t& index = indices.as<std::int64_t>()[i];
    if (index < 0) continue;  // a row without a label, which data.missing allows
    const std::string& label = rows.labels[static_cast<std::size_t>(index)];
    const auto found = std::ranges::find(names, label);
    if (found == names.end()) throw Error(rows.place(i) + ": the training split has no label '" + label + "'");
    index = found - names.begin();
  }
  rows.arrays.set(rows.labelled, indices);
  rows.labels = names;
  return rows;
}

/// Returns the images with their labels as indices in `names`.
Images labelled_as(Images images, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto found = std::ranges::find(names, images.names[static_cast<std::size_t>(images.labels[i])]);
    if (found == names.end())
      throw Error(images.place(i) + ": the training split has no label '" +
                  images.names[static_cast<std::size_t>(images.labels[i])] + "'");
    images.labels[i] = found - names.begin();
  }
  images.names = names;
  return images;
}

std::shared_ptr<const Tokenizer> make_tokenizer(const Recipe& recipe, const std::vector<std::string>& lines) {
  const TokenizerSettings& settings = recipe.tokenizer;
  if (settings.kind == "saved") return load_tokenizer(settings.path);
  if (settings.kind == "sentencepiece") return std::make_shared<SentencePieceTokenizer>(lines, settings.pieces);
  if (settings.kind == "gpt2") return std::make_shared<Gpt2Tokenizer>(settings.vocab, settings.merges, settings.gpt2);
  if (settings.kind == "words")
    return std::make_shared<WordTokenizer>(
        settings.vocabulary.empty() ? WordTokenizer(lines, settings.words) : of_file(settings.vocabulary, [&] {
          return WordTokenizer::with_vocabulary(read_lines(settings.vocabulary, recipe.data.reading), settings.words);
        }));
  return std::make_shared<CharacterTokenizer>(lines, settings.unknown, recipe.data.has_rows());
}
}  // namespace

Texts::Texts(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  if (!data.no_more.empty()) throw Error(data.no_more);
  if (data.kind.empty() || data.training.empty()) throw Error("the recipe has no data: Recipe::load reads a whole one");
  for (const std::vector<std::string>& files : data.training)
    for (const std::string& file : files)
      if (!path_exists(file))
        throw FileError("cannot read " + file + ": No such file or directory; give the file with --set data." +
                        data.files_key() + "=FILE, or its directory with --set data.folder=DIRECTORY");
  training_ = read(data, data.training);
  if (data.validation.empty())
    split(data);
  else
    validation_ = read(data, data.validation);
  if (!data.test.empty()) test_ = read(data, data.test);
  if (data.has_rows() && training_.size() == 0) throw Error("the training split has no rows: " + named(data.training));
}

Texts::Split Texts::read(const Recipe::Data& data, const Recipe::Data::Files& files) {
  Split split;
  for (const std::vector<std::string>& part : files) read_part(data, part, split);
  return split;
}

void Texts::read_part(const Recipe::Data& data, const std::vector<std::string>& files, Split& split) {
  const std::size_t before = split.size();
  Part part = {files};
  if (data.has_images()) split.images = read_images(files[0], data.channels, data.resize);
  if (data.has_arrays()) split.arrays = read_arrays(files[0], data);
  if (data.kind == "text") {
    std::string text = read_text(files[0], data.reading);
    if (split.not_utf8.empty()) split.not_utf8 = error_not_utf8(files[0], text);
    if (!split.text.empty() && split.text.back() != '\n') split.text += '\n';  // keeps the words of two files apart
    split.text = split.text.empty() ? std::move(text) : split.text + text;
  }
  if (data.kind == "documents") {
    const std::string text = read_text(files[0], data.reading);
    if (split.not_utf8.empty()) split.not_utf8 = error_not_utf8(files[0], text);
    append({split_documents(text, data.separator)}, split.columns);
  }
  if (data.kind == "table") {
    RowTexts rows = read_rows(files[0], data.table);
    for_each_column(data, [&](const Column& column, std::size_t field) {
      if (column.kind == Column::Kind::label)
        for (std::string& label : rows.columns[field]) label = trimmed(label);
    });
    append(std::move(rows.columns), split.columns);
    part.lines = std::move(rows.lines);
  }
  if (data.kind == "tags") {
    SentenceTexts sentences = read_sentences(files[0], data.table);
    append(std::move(sentences.columns), split.columns);
    part.lines = std::move(sentences.lines);
  }
  if (data.has_pairs()) {
    PairTexts pairs =
        files.size() == 1 ? read_pairs(files[0], data.reading) : read_pairs(files[0], files[1], data.reading);
    append({std::move(pairs.source), std::move(pairs.target)}, split.columns);
    part.lines = std::move(pairs.lines);
  }
  part.rows = split.size() - before;
  split.parts.push_back(std::move(part));
}

std::uint64_t Texts::checksum() const {
  std::vector<std::uint64_t> checksums;
  for (const Split* split : {&training_, &validation_, &test_}) {
    checksums.push_back(checksum_of(split->text.data(), split->text.size()));
    const Images& images = split->images;
    checksums.push_back(checksum_of(images.pixels.data(), images.pixels.size()));
    checksums.push_back(checksum_of(images.labels.data(), images.labels.size() * sizeof images.labels[0]));
    for (const auto& array : split->arrays.arrays)
      checksums.push_back(checksum_of(array.value.data(), array.value.bytes()));
    for (const auto& column : split->columns)
      for (const std::string& text : column) checksums.push_back(checksum_of_piece(text.data(), text.size()));
    checksums.push_back(split->columns.size());
  }
  return checksum_of_pieces(checksums);
}

void Texts::split(const Recipe::Data& data) {
  validation_ = {"", {}, {}, {}, training_.parts, 0, training_.not_utf8};
  if (!data.has_rows()) {
    TextSplit texts = split_text(training_.text, data.split);
    training_.text = std::move(texts.training);
    validation_.text = std::move(texts.validation);
    return;
  }
  const std::size_t count = training_.size();
  const auto held_out = static_cast<std::size_t>(data.held_out);
  const std::size_t trained = held_out == 0      ? static_cast<std::size_t>(static_cast<double>(count) * data.split)
                              : held_out < count ? count - held_out
                                                 : 0;
  validation_.skipped = trained;
  if (data.has_images()) validation_.images = cut_off(training_.images, trained);
  if (data.has_arrays()) validation_.arrays = cut_off(training_.arrays, trained);
  for (std::vector<std::string>& column : training_.columns) {
    const auto end = column.begin() + static_cast<std::ptrdiff_t>(trained);
    validation_.columns.emplace_back(std::make_move_iterator(end), std::make_move_iterator(column.end()));
    column.erase(end, column.end());
  }
}

const Texts::Split& Texts::evaluated(const Recipe::Data& data, bool on_test) const {
  if (on_test && test_.parts.empty()) throw Error("the data has no test split: data.test_" + data.files_key());
  return on_test ? test_ : validation_;
}

std::vector<std::string> Texts::lines_for(const Recipe& recipe, bool source) const {
  const TableTexts& columns = training_.columns;
  if (recipe.data.kind == "text") return {training_.text};
  if (recipe.data.kind == "documents") return columns[0];
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<std::string>& more) { lines.insert(lines.end(), more.begin(), more.end()); };
  if (recipe.data.has_pairs()) {
    if (source || recipe.tokenizer.joint) add(columns[0]);
    if (!source || recipe.tokenizer.joint) add(columns[1]);
  }
  for_each_column(recipe.data, [&](const Column& column, std::size_t field) {
    if (column.kind == Column::Kind::text) add(columns[field]);
  });
  return lines;
}

Tokenizers Texts::make_tokenizers(const Recipe& recipe) const {
  if (recipe.data.has_images()) return {nullptr, nullptr, training_.images.names};
  if (recipe.data.has_arrays()) return {nullptr, nullptr, training_.arrays.labels};
  const TokenizerSettings& settings = recipe.tokenizer;
  if (settings.kind != "saved" && settings.kind != "gpt2") check_utf8_texts(recipe.data);
  if (recipe.data.has_pairs() && settings.kind == "saved" && is_folder(settings.path))
    return {load_tokenizer(settings.path), load_target_tokenizer(settings.path), {}};
  Tokenizers made;
  made.target = make_tokenizer(recipe, lines_for(recipe, false));
  const bool one = recipe.tokenizer.joint || !recipe.data.has_pairs();
  made.source = one ? made.target : make_tokenizer(recipe, lines_for(recipe, true));
  for_each_column(recipe.data, [&](const Column& column, std::size_t field) {
    const std::vector<std::string>& texts = training_.columns[field];
    std::set<std::string> labels;
    if (column.kind == Column::Kind::label) labels.insert(texts.begin(), texts.end());
    if (column.kind == Column::Kind::tags)
      for (const std::string& tags : texts)
        for (const std::string& tag : words_in(tags)) labels.insert(tag);
    if (!labels.empty()) made.labels.assign(labels.begin(), labels.end());
  });
  return made;
}

void Texts::check_utf8_texts(const Recipe::Data& data) const {
  if (!training_.not_utf8.empty()) throw Error(training_.not_utf8);
  const TextPlace place = places(data, training_);
  const auto check = [&](std::size_t column) {
    for (std::size_t row = 0; row < training_.columns[column].size(); ++row) {
      try {
        check_utf8(training_.columns[column][row]);
      } catch (const Error& error) {
        throw Error(place(row, column) + ": " + error.what());
      }
    }
  };
  if (data.has_pairs())
    for (std::size_t i = 0; i < training_.columns.size(); ++i) check(i);
  for_each_column(data, [&](const Column& column, std::size_t field) {
    if (column.kind == Column::Kind::text) check(field);
  });
}

TextPlace Texts::places(const Recipe::Data& data, const Split& split) {
  const char* unit = data.kind == "documents" ? ", text " : data.kind == "tags" ? ", sentence from line " : ", line ";
  return [parts = split.parts, skipped = split.skipped, unit](std::size_t row, std::size_t column) {
    auto part = parts.begin();
    for (row += skipped; row >= part->rows && part + 1 != parts.end(); ++part) row -= part->rows;
    return part->files[std::min(column, part->files.size() - 1)] + unit +
           std::to_string(part->lines.empty() ? row + 1 : part->lines[row]);
  };
}

DataRows Texts::rows(const Recipe& recipe, const Split& split, const Tokenizers& tokenizers,
                     std::int64_t max_length) const {
  const Recipe::Data& data = recipe.data;
  using Kind = Column::Kind;
  std::vector<ColumnTexts> columns;
  if (data.kind == "documents")
    columns = {{{"text", Kind::target}, split.columns.data(), tokenizers.target.get(), data.prompt_end}};
  if (data.has_pairs())
    columns = {{{"source", Kind::text}, &split.columns[0], tokenizers.source.get()},
               {{"target", Kind::target}, &split.columns[1], tokenizers.target.get()}};
  for_each_column(data, [&](const Column& column, std::size_t field) {
    const bool of_words = column.kind == Kind::text || column.kind == Kind::tags;
    const Tokenizer* tokenizer = of_words ? tokenizers.target.get() : nullptr;
    columns.push_back({column, &split.columns[field], tokenizer, "", &tokenizers.labels});
  });
  return rows_of(columns, max_length, places(data, split));
}

std::unique_ptr<Batches> Texts::batches(const Recipe& recipe, const Tokenizers& tokenizers, bool on_test) const {
  const Split& other = evaluated(recipe.data, on_test);
  if (recipe.data.kind == "text") {
    const Tokenizer& tokenizer = *tokenizers.target;
    require_memory_left(sizeof(Tokens::value_type) * (training_.text.size() + other.text.size()),
                        "a token for each byte of " + named(recipe.data.training));
    const TextBatchesOptions options = {recipe.batch_size, recipe.data.block_size, recipe.trainer.seed,
                                        recipe.data.consecutive};
    const auto encoded = [&](const Split& split) {
      try {
        return tokenizer.encode(split.text);
      } catch (const Error& error) {
        if (!split.not_utf8.empty()) throw Error(split.not_utf8);
        throw Error(joined(split.parts, [](const Part& part) { return part.files[0]; }) + ": " + error.what());
      }
    };
    return std::make_unique<TextBatches>(encoded(training_), encoded(other), options);
  }
  if (recipe.data.has_images())
    return std::make_unique<ImageBatches>(
        labelled_as(training_.images, tokenizers.labels), labelled_as(other.images, tokenizers.labels),
        ImageBatchesOptions{recipe.batch_size, recipe.trainer.seed, recipe.data.images});
  if (recipe.data.has_arrays())
    return std::make_unique<ArrayBatches>(labelled_as(training_.arrays, tokenizers.labels),
                                          labelled_as(other.arrays, tokenizers.labels),
                                          ArrayBatchesOptions{recipe.batch_size, recipe.trainer.seed});
  DataRows training = rows(recipe, training_, tokenizers, recipe.data.max_length);
  RowBatchesOptions options = row_options(recipe);
  if (recipe.trainer.privacy.clip_norm > 0) options.draws = recipe.trainer.accumulate;
  return std::make_unique<RowBatches>(std::move(training), rows(recipe, other, tokenizers, 0), options);
}

PairTexts Texts::answers(const Recipe& recipe, bool on_test) const {
  const Split& split = evaluated(recipe.data, on_test);
  if (recipe.data.has_pairs()) return {split.columns[0], split.columns[1]};
  PairTexts answers;
  for (const std::string& text : split.columns[0]) {
    PromptSplit split = split_prompt(text, recipe.data.prompt_end);
    answers.source.push_back(std::move(split.prompt));
    answers.target.push_back(std::move(split.answer));
  }
  return answers;
}

RowBatchesOptions row_options(const Recipe& recipe) {
  RowBatchesOptions options;
  if (recipe.batch_size > 0) options.rows = recipe.batch_size;
  options.tokens = recipe.batch_tokens;
  options.bucket = recipe.bucket;
  options.seed = recipe.trainer.seed;
  return options;
}

void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory) {
  if (!tokenizers.labels.empty()) write_file(directory + labels_file, indented(tokenizers.labels));
  if (!tokenizers.target) return;
  if (tokenizers.source == tokenizers.target) {
    save_tokenizer(*tokenizers.target, directory + "/tokenizer.json");
    return;
  }
  save_tokenizer(*tokenizers.source, directory + "/source_tokenizer.json");
  save_tokenizer(*tokenizers.target, directory + "/target_tokenizer.json");
}

Tokenizers load_tokenizers(const std::string& directory, const Recipe::Data& data) {
  const auto load = [&](const std::string& name) {
    return std::shared_ptr<const Tokenizer>(load_tokenizer(directory + "/" + name));
  };
  Tokenizers loaded;
  if (path_exists(directory + labels_file)) {
    const std::string file = directory + labels_file;
    const JsonNode json(read_file(file), file, JsonErrors::file);
    for (const JsonNode& label : json.elements()) loaded.labels.push_back(label.text());
  }
  if (!data.has_tokens()) return loaded;
  const bool one = !path_exists(directory + "/source_tokenizer.json");
  loaded.target = load(one ? "tokenizer.json" : "target_tokenizer.json");
  loaded.source = one ? loaded.target : load("source_tokenizer.json");
  return loaded;
}

}  // namespace xtape::train
