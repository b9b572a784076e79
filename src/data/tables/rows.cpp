// Converts texts to rows of tokens, labels and numbers, and to arrays.
#include <algorithm>

#include "base/arrays/lengths.hpp"
#include "base/system/process_memory.hpp"
#include "data/tables/fields.hpp"
#include "data/texts/texts.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
using Cell = DataRows::Cell;

bool holds_text(const Column& column) {
  return column.kind == Column::Kind::text || column.kind == Column::Kind::target;
}

/// Encodes prompt and answer separately, because generation starts from the tokens of the prompt alone.
Cell target_cell(const ColumnTexts& column, const std::string& text) {
  if (column.prompt_end.empty()) return {framed(*column.tokenizer, text), {}};
  const PromptSplit split = split_prompt(text, column.prompt_end);
  Cell cell{framed(*column.tokenizer, split.prompt), {}};
  cell.tokens.pop_back();
  cell.given.assign(cell.tokens.size(), true);
  const Tokens answer = framed(*column.tokenizer, split.answer);
  cell.tokens.insert(cell.tokens.end(), answer.begin() + 1, answer.end());
  return cell;
}

Cell label_cell(const std::vector<std::string>& labels, const std::string& text) {
  check_label(text);
  const auto found = std::lower_bound(labels.begin(), labels.end(), text);
  if (found == labels.end() || *found != text)
    throw Error(shown(text) + " is not one of the " + std::to_string(labels.size()) + " labels of the training split");
  return {{static_cast<std::int32_t>(found - labels.begin())}, {}};
}

Cell tags_cell(const ColumnTexts& column, const std::string& text) {
  Cell cell;
  cell.tokens.assign(tokens_before(*column.tokenizer), ignored_target);
  const std::vector<std::string> tags = words_in(text);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    try {
      cell.tokens.push_back(label_cell(*column.labels, tags[i]).tokens[0]);
    } catch (const Error& error) {
      throw Error("word " + std::to_string(i + 1) + ": " + error.what());
    }
  }
  cell.tokens.push_back(ignored_target);
  return cell;
}

Cell cell_of(const ColumnTexts& column, std::size_t row) {
  if (column.column.kind == Column::Kind::target) return target_cell(column, column.texts[0][row]);
  if (column.column.kind == Column::Kind::text) return {source_of(*column.tokenizer, column.texts[0][row]), {}};
  if (column.column.kind == Column::Kind::label) return label_cell(*column.labels, column.texts[0][row]);
  if (column.column.kind == Column::Kind::tags) return tags_cell(column, column.texts[0][row]);
  Cell cell;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, column.column.width); ++i)
    cell.numbers.push_back(number_of<float>(column.texts[i][row]));
  return cell;
}

/// Throws Error if a column lacks what its kind needs, or if the columns have different numbers of texts.
void check(const std::vector<ColumnTexts>& columns, std::int64_t max_length) {
  if (columns.empty()) throw Error("rows need at least one column of texts");
  if (max_length < 0) throw Error("max_length must not be negative, got " + std::to_string(max_length));
  for (const ColumnTexts& each : columns) {
    const std::string column = "column '" + each.column.name + "' has ";
    if (each.texts == nullptr) throw Error(column + "no texts");
    const bool tags = each.column.kind == Column::Kind::tags;
    if ((tags || holds_text(each.column)) && each.tokenizer == nullptr) throw Error(column + "no tokenizer");
    if ((tags || each.column.kind == Column::Kind::label) && each.labels == nullptr) throw Error(column + "no labels");
    if (each.texts->size() != columns[0].texts->size())
      throw Error(column + std::to_string(each.texts->size()) + " texts, and column '" + columns[0].column.name + "' " +
                  std::to_string(columns[0].texts->size()));
  }
}

/// Throws Error if a text of a row with tags does not have one token for each tag.
template <class Place>
void check_tags(const std::vector<ColumnTexts>& columns, const std::vector<Cell>& cells, const Place& place) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (columns[i].column.kind != Column::Kind::tags || columns[k].column.kind != Column::Kind::text) continue;
      const std::size_t frame = tokens_before(*columns[i].tokenizer) + 1;
      try {
        check_one_token_a_word(*columns[k].tokenizer, cells[k].tokens.size(), cells[i].tokens.size() - frame);
      } catch (const Error& error) {
        throw Error(place(k) + ": " + error.what());
      }
    }
}

/// Returns the memory of the cells if each byte of a text becomes a token.
std::size_t most_bytes_of(const std::vector<ColumnTexts>& columns) {
  std::size_t bytes = 0;
  for (const ColumnTexts& column : columns)
    for (const std::string& text : *column.texts) bytes += sizeof(Cell) + text.size() * sizeof(Tokens::value_type);
  return bytes;
}
}  // namespace

void check_one_token_a_word(const Tokenizer& tokenizer, std::size_t tokens, std::size_t words) {
  const std::size_t frame = tokens_before(tokenizer) + 1;
  if (tokens != words + frame)
    throw Error("the tokenizer makes " + std::to_string(tokens - frame) + " tokens of " + std::to_string(words) +
                " words: tags need one that makes a token of each word, such as that of kind \"words\"");
}

PromptSplit split_prompt(const std::string& text, const std::string& prompt_end) {
  const std::size_t found = text.find(prompt_end);
  if (found == std::string::npos) throw Error("there is no '" + prompt_end + "' to end the prompt");
  const std::size_t end = found + prompt_end.size();
  return {text.substr(0, end), text.substr(end)};
}

Tokens framed(const Tokenizer& tokenizer, const std::string& text) {
  if (tokenizer.start() < 0 || tokenizer.end() < 0)
    throw Error("the tokenizer has no start and end tokens to put around a text");
  Tokens tokens = {tokenizer.start()};
  const Tokens inside = tokenizer.encode(text);
  tokens.insert(tokens.end(), inside.begin(), inside.end());
  tokens.push_back(tokenizer.end());
  return tokens;
}

Tokens source_of(const Tokenizer& tokenizer, const std::string& text) {
  if (tokenizer.start() >= 0 || tokenizer.end() < 0) return framed(tokenizer, text);
  Tokens tokens = tokenizer.encode(text);
  tokens.push_back(tokenizer.end());
  return tokens;
}

Tokens prompt_of(const Tokenizer& tokenizer, const std::string& text) {
  Tokens tokens = tokenizer.encode(text);
  if (tokenizer.begins()) tokens.insert(tokens.begin(), tokenizer.start());
  return tokens;
}

DataRows rows_of(const std::vector<ColumnTexts>& columns, std::int64_t max_length, const TextPlace& place) {
  check(columns, max_length);
  DataRows made;
  made.place = place;
  const std::size_t count = columns[0].texts->size();
  require_memory_left(most_bytes_of(columns), "the tokens of " + std::to_string(count) + " rows");
  for (const ColumnTexts& each : columns) {
    made.columns.push_back(each.column);
    if (each.tokenizer != nullptr) made.columns.back().pad = std::max(0, each.tokenizer->pad());
  }
  const auto fits = [&](const Cell& cell, const ColumnTexts& column) {
    // The number of special tokens: start and end, or only end if an encoder's tokenizer has no start token.
    const std::size_t frame = column.column.kind == Column::Kind::text && column.tokenizer->start() < 0 ? 1 : 2;
    return cell.tokens.size() > frame &&
           (max_length == 0 || cell.tokens.size() <= static_cast<std::size_t>(max_length) + frame);
  };
  for (std::size_t row = 0; row < count; ++row) {
    std::vector<Cell> cells;
    bool kept = true;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      try {
        cells.push_back(cell_of(columns[i], row));
      } catch (const Error& error) {
        const Column& column = columns[i].column;
        const bool field = !holds_text(column) && !column.name.empty();
        throw Error((place ? place(row, i) : "row " + std::to_string(row + 1)) + ": " +
                    (field ? "column '" + column.name + "': " : "") + error.what());
      }
      kept = kept && (!holds_text(columns[i].column) || fits(cells.back(), columns[i]));
    }
    if (!kept) continue;
    check_tags(columns, cells, [&](std::size_t i) { return place ? place(row, i) : "row " + std::to_string(row + 1); });
    made.rows.push_back(std::move(cells));
    if (place) made.texts.push_back(static_cast<std::uint32_t>(row));
  }
  return made;
}

DataRows documents_of(const std::vector<std::string>& texts, const Tokenizer& tokenizer, std::int64_t max_length,
                      const std::string& prompt_end) {
  const ColumnTexts column = {{"text", Column::Kind::target}, &texts, &tokenizer, prompt_end};
  return rows_of({column}, max_length, [](std::size_t row, std::size_t) { return "text " + std::to_string(row + 1); });
}

DataRows pairs_of(const PairTexts& texts, const Tokenizer& source, const Tokenizer& target, std::int64_t max_length) {
  if (texts.source.size() != texts.target.size())
    throw Error("pairs need a target for every source, got " + std::to_string(texts.source.size()) + " sources and " +
                std::to_string(texts.target.size()) + " targets");
  const std::vector<ColumnTexts> columns = {{{"source", Column::Kind::text}, &texts.source, &source},
                                            {{"target", Column::Kind::target}, &texts.target, &target}};
  return rows_of(columns, max_length, [](std::size_t row, std::size_t i) {
    return "line " + std::to_string(row + 1) + " of the " + (i == 0 ? "source" : "target");
  });
}

Array token_array(const std::vector<Tokens>& rows, std::int32_t pad, std::int64_t multiple) {
  if (multiple < 1 || multiple > most_batch_tokens)
    throw Error("multiple must be 1 to " + std::to_string(most_batch_tokens) + ", got " + std::to_string(multiple));
  std::size_t longest = 0;
  for (const Tokens& row : rows) longest = std::max(longest, row.size());
  const std::int64_t columns = round_up(static_cast<std::int64_t>(longest), multiple);
  Array array(Dtype::int64, {std::ssize(rows), columns});
  std::int64_t* to = array.as<std::int64_t>();
  std::fill_n(to, array.count(), std::int64_t{pad});
  for (const Tokens& row : rows) {
    std::copy(row.begin(), row.end(), to);
    to += columns;
  }
  return array;
}

}  // namespace xtape
