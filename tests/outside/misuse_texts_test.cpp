// Misuse of tokenizers, files of text, data sets and batches.
#include "misuse_tokenizers.hpp"

using namespace xtape;

namespace misuse::texts {
namespace {
ChatTemplate plain_chats() {
  return ChatTemplate(R"({"name": "x", "user": "{content}", "assistant": {"answer": "{content}{end}"}})");
}

std::vector<Row> rows_of_texts(World& w) {
  const auto sized = [](std::int64_t rows, std::int64_t block_size, bool consecutive = false) {
    return [=] {
      TextBatches(Tokens{0, 1, 2}, Tokens{0, 1},
                  {.rows = rows,
                   .block_size = block_size,
                   .seed = 0,
                   .order = consecutive ? TextOrder::consecutive : TextOrder::random});
    };
  };
  const auto left = [&w] {  // what is left of batches that were moved
    TextBatches batches = w.strips;
    const TextBatches taken = std::move(batches);
    return batches;
  };
  const auto with_blank = [](const auto& fill) {
    return [fill] {
      BatchArrays other = {{"tokens", Array(Dtype::int64, {1, 1})}};
      fill(other);
      CHECK(other.at("targets").shape() == Shape({2, 3}));
    };
  };
  const auto column = [&w](const std::function<void(ColumnTexts&)>& change) {
    return [&w, change] {
      ColumnTexts text{{"text", Column::Kind::target}, &lines, &w.words};
      change(text);
      rows_of({text}, 0, [](std::size_t, std::size_t) { return std::string("here"); });
    };
  };
  const auto of_rows = [](const std::function<void(DataRows&)>& change, RowBatchesOptions options = {}) {
    return [=] {
      DataRows rows = World::rows();
      change(rows);
      RowBatches(rows, World::rows(), options);
    };
  };
  static const std::vector<std::string> one = {"a"};
  return {
      {"read_text", "no such file", "/nowhere", [] { read_text("/nowhere"); }},
      {"read_text", "a folder", "cannot read", [&w] { read_text(w.folder.path()); }},
      {"read_text", "a negative line", "max_line must not be negative",
       [&w] { read_text(w.merges(), {.max_line = -1}); }},
      {"read_lines", "no such file", "/nowhere", [] { read_lines("/nowhere"); }},
      {"read_lines", "empty", "cannot read", [] { read_lines(""); }},
      {"watch_inputs", "no seconds", "the time must be positive", [] { watch_inputs([](const std::string&) {}, 0); }},
      {"watch_inputs", "NaN", "the time must be positive", [] { watch_inputs([](const std::string&) {}, NAN); }},
      {"watch_inputs", "empty", "", [] { watch_inputs({}); }},
      {"token_array", "no rows", "",
       [] {
         CHECK(token_array({}).shape() == Shape({0, 0}));
       }},
      {"token_array", "no multiple", "multiple must be 1 to", [] { token_array({{1}}, 0, 0); }},
      {"split_text", "no share", "must be a fraction", [] { split_text("abc", NAN); }},
      {"split_text", "a negative share", "must be a fraction", [] { split_text("abc", -1); }},
      {"TextBatches::TextBatches", "no rows", "", [=] { CHECK_THROWS_AS(sized(0, 1)(), Error); }},
      {"TextBatches::TextBatches", "a negative block", "", [=] { CHECK_THROWS_AS(sized(1, -1)(), Error); }},
      {"TextBatches::TextBatches", "a huge batch", "", [=] { CHECK_THROWS_AS(sized(INT64_MAX, INT64_MAX)(), Error); }},
      {"TextBatches::TextBatches", "too little text", "blocks of 3 need at least 4", sized(1, 3)},
      {"TextBatches::TextBatches", "too little for strips", "need at least", sized(2, 1, true)},
      {"TextBatches::training", "another batch", "", with_blank([&w](BatchArrays& b) { w.batches.training(0, b); })},
      {"TextBatches::training", "no batch", "",
       [&w] {
         BatchArrays none;
         w.batches.training(0, none);
       }},
      {"TextBatches::training", "the last index", "",
       [&w] {
         w.strips.training(UINT64_MAX, w.blank);
         w.batches.training(UINT64_MAX, w.blank);
       }},
      {"TextBatches::training", "moved", gone, [=, &w] { left().training(0, w.blank); }},
      {"TextBatches::training_continues", "moved", gone, [=] { left().training_continues(1); }},
      {"TextBatches::epoch_batches", "moved", gone, [=] { static_cast<void>(left().epoch_batches()); }},
      {"TextBatches::validation", "moved", gone, [=, &w] { left().validation(0, w.blank); }},
      {"TextBatches::validation", "another batch", "",
       with_blank([&w](BatchArrays& b) { w.batches.validation(0, b); })},
      {"TextBatches::validation", "negative", "there is no validation batch -1",
       [&w] { w.batches.validation(-1, w.blank); }},
      {"TextBatches::validation", "out of range", "there is no validation batch 2",
       [&w] { w.strips.validation(2, w.blank); }},
      {"TextBatches::validation", "far out of range", "there is no validation batch",
       [&w] { w.batches.validation(INT64_MAX, w.blank); }},
      {"TextBatches::validation_batches", "moved", gone, [=] { static_cast<void>(left().validation_batches()); }},
      {"TextBatches::validation_continues", "negative", "", [&w] { CHECK(!w.strips.validation_continues(-1)); }},
      {"TextBatches::validation_sample", "another batch", "",
       with_blank([&w](BatchArrays& b) { w.batches.validation_sample(0, b); })},
      {"TextBatches::validation_sample", "moved", gone, [=, &w] { left().validation_sample(0, w.blank); }},
      {"RowBatches::RowBatches", "no rows in a batch", "at least one row", of_rows([](DataRows&) {}, {.rows = 0})},
      {"RowBatches::RowBatches", "a negative number of draws", "`draws` must not be negative",
       of_rows([](DataRows&) {}, {.draws = -1})},
      {"RowBatches::RowBatches", "draws of more rows than there are", "more than the",
       of_rows([](DataRows&) {}, {.rows = 1000, .draws = 3})},
      {"RowBatches::RowBatches", "a huge bucket", "`bucket` must be", of_rows([](DataRows&) {}, {.bucket = INT64_MAX})},
      {"RowBatches::RowBatches", "a huge number of rows", "", of_rows([](DataRows&) {}, {.rows = INT64_MAX})},
      {"RowBatches::RowBatches", "no rows", "the training split has no rows",
       of_rows([](DataRows& d) { d.rows.clear(); })},
      {"RowBatches::RowBatches", "no columns", "at least one column", of_rows([](DataRows& d) { d.columns.clear(); })},
      {"RowBatches::RowBatches", "a cell too many", "one cell for each column",
       of_rows([](DataRows& d) { d.rows[0].resize(2); })},
      {"RowBatches::RowBatches", "no tokens", "at least its start and its end",
       of_rows([](DataRows& d) { d.rows[0][0].tokens.clear(); })},
      {"RowBatches::RowBatches", "given tokens beyond the text", "9 given tokens",
       of_rows([](DataRows& d) { d.rows[0][0].given.resize(9); })},
      {"RowBatches::RowBatches", "other columns", "the same columns",
       of_rows([](DataRows& d) { d.columns[0].kind = Column::Kind::text; })},
      {"RowBatches::RowBatches", "numbers missing", "has 0 numbers, not 2",
       [] {
         const DataRows rows = {{{"n", Column::Kind::number, 0, 2}}, {{DataRows::Cell{}}}};
         RowBatches(rows, rows, {});
       }},
      {"RowBatches::RowBatches", "too many numbers", "has 3 numbers, not 1",
       [] {
         const DataRows rows = {{{"n", Column::Kind::number}}, {{DataRows::Cell{{}, {1, 2, 3}}}}};
         RowBatches(rows, rows, {});
       }},
      {"RowBatches::RowBatches", "several labels", "has 2 labels, not 1",
       [] {
         const DataRows rows = {{{"l", Column::Kind::label}}, {{DataRows::Cell{{1, 2}, {}}}}};
         RowBatches(rows, rows, {});
       }},
      {"RowBatches::training", "another batch", "",
       [] {
         BatchArrays b;
         World::row_batches().training(UINT64_MAX, b);
         CHECK(b.size() == 2);
       }},
      {"RowBatches::training_place", "out of range, or unknown", "",
       [] {
         DataRows rows = World::rows();
         rows.place = [](std::size_t row, std::size_t) { return "text " + std::to_string(row); };
         rows.texts = {7};
         const RowBatches batches(rows, World::rows(), {});
         CHECK(batches.training_place(0, "tokens", 0) == "text 7");
         CHECK(batches.training_place(UINT64_MAX, "targets", 0) == "text 7");
         CHECK(batches.training_place(0, "tokens", -1).empty());
         CHECK(batches.training_place(0, "tokens", 1).empty());
         CHECK(batches.training_place(0, "labels", 0).empty());
         CHECK(World::row_batches().training_place(0, "tokens", 0).empty());
       }},
      {"RowBatches::validation", "negative", "there is no validation batch -1",
       [&w] { World::row_batches().validation(-1, w.blank); }},
      {"RowBatches::validation", "out of range", "there is no validation batch 1",
       [&w] { World::row_batches().validation(1, w.blank); }},
      {"RowBatches::validation_sample", "another batch", "",
       [] {
         BatchArrays b;
         World::row_batches().validation_sample(UINT64_MAX, b);
       }},
      {"read_sentences", "no such file", "/nowhere", [] { read_sentences("/nowhere"); }},
      {"read_sentences", "no columns", "",
       [&w] { CHECK_THROWS_AS(read_sentences(w.folder.write("t", "a\tb\n"), {.columns = 0}), Error); }},
      {"read_sentences", "a field of two words", "",
       [&w] { CHECK_THROWS_AS(read_sentences(w.folder.write("t", "a b\tc\n")), FileError); }},
      {"read_table", "no such file", "/nowhere", [] { read_table("/nowhere"); }},
      {"read_table", "no columns", "",
       [&w] { CHECK_THROWS_AS(read_table(w.folder.write("t", "a\tb\n"), {.columns = 0}), Error); }},
      {"read_table", "a negative header", "",
       [&w] { CHECK_THROWS_AS(read_table(w.folder.write("t", "a\tb\n"), {.skip_lines = -1}), Error); }},
      {"read_table", "a header beyond the file", "",
       [&w] { CHECK(read_table(w.folder.write("t", "a\tb\n"), {.skip_lines = 9})[0].empty()); }},
      {"read_pairs", "no such file", "/nowhere", [] { read_pairs("/nowhere"); }},
      {"read_csv", "no such file", "/nowhere", [] { read_csv("/nowhere"); }},
      {"read_csv", "integers", "float32 or float64, not int32",
       [&w] { read_csv(w.folder.write("t", "a\n1\n"), {.dtype = Dtype::int32}); }},
      {"CsvTable::at", "unknown", "'b'", [] { static_cast<void>(CsvTable().at("b")); }},
      {"CsvTable::matrix", "no columns", "at least one column", [] { CsvTable().matrix({}); }},
      {"CsvTable::matrix_without", "unknown", "'b'", [] { CsvTable().matrix_without({"b"}); }},
      {"read_array_rows", "no such file", "/nowhere", [] { read_array_rows("/nowhere.npz"); }},
      {"read_array_rows", "an input of nothing", "has no columns",
       [&w] {
         read_array_rows(w.folder.write("t", "a\n1\n"), {{"x", {}}});
       }},
      {"ArrayRows::size", "empty", "", [] { CHECK(ArrayRows().size() == 0); }},
      {"ArrayRows::place", "beyond the rows", "", [] { CHECK(ArrayRows().place(9) == "row 10"); }},
      {"ArrayBatches::ArrayBatches", "empty", "the training split has no arrays", [] { ArrayBatches({}, {}, {}); }},
      {"ArrayBatches::training_place", "no such row", "",
       [] {
         CHECK(World::array_batches().training_place(0, "x", -1).empty());
         CHECK(World::array_batches().training_place(UINT64_MAX, "x", INT64_MAX).empty());
       }},
      {"ArrayBatches::training", "another batch", "",
       [] {
         BatchArrays b;
         World::array_batches().training(UINT64_MAX, b);
         CHECK(b.at("x").count() == 2);
       }},
      {"ArrayBatches::validation", "negative", "there is no validation batch -1",
       [&w] { World::array_batches().validation(-1, w.blank); }},
      {"ArrayBatches::validation_sample", "another batch", "",
       [] {
         BatchArrays b;
         World::array_batches().validation_sample(UINT64_MAX, b);
       }},
      {"RowReader::RowReader", "empty", "there is no array", [] { RowReader({}, {}); }},
      {"RowReader::read", "negative", "there is no batch -1", [] { World::reader().read(-1); }},
      {"RowReader::read", "moved", gone, [] { moved_from(World::reader()).read(0); }},
      {"RowReader::batches", "moved", gone, [] { static_cast<void>(moved_from(World::reader()).batches()); }},
      {"RowReader::set_epoch", "moved", gone, [] { moved_from(World::reader()).set_epoch(1); }},
      {"RowReader::set_epoch", "the last one", "", [] { World::reader().set_epoch(UINT64_MAX); }},
      {"MiniBatches::begin", "moved", gone,
       [] {
         auto data = batches(1, 1, std::vector<float>{1, 2});
         const auto taken = std::move(data);
         data.begin();
       }},
      {"MiniBatches::end", "moved", gone,
       [] {
         auto data = batches(1, 1, std::vector<float>{1, 2});
         const auto taken = std::move(data);
         data.end();
       }},
      {"MiniBatches::size", "moved", gone,
       [] {
         auto data = batches(1, 1, std::vector<float>{1, 2});
         const auto taken = std::move(data);
         static_cast<void>(data.size());
       }},
      {"split_rows", "empty", "there is no array", [] { split_rows(0.5, 1, std::vector<ArrayView>()); }},
      {"read_pairs", "no tab", "line 1", [&w] { read_pairs(w.folder.write("t", "a\n")); }},
      {"framed", "no start", "has no start and end tokens", [&w] { framed(w.bare, "a"); }},
      {"source_of", "no end", "has no start and end tokens", [&w] { source_of(w.bare, "a"); }},
      {"prompt_of", "not in the vocabulary", "'x'", [&w] { prompt_of(w.bare, "x"); }},
      {"split_prompt", "no end", "there is no '=' to end the prompt", [] { split_prompt("a", "="); }},
      {"split_prompt", "an empty end", "", [] { CHECK(split_prompt("a", "").prompt.empty()); }},
      {"rows_of", "no columns", "at least one column", [] { rows_of({}, 0, {}); }},
      {"rows_of", "no texts", "column 'text' has no texts", column([](ColumnTexts& c) { c.texts = nullptr; })},
      {"rows_of", "no tokenizer", "column 'text' has no tokenizer",
       column([](ColumnTexts& c) { c.tokenizer = nullptr; })},
      {"rows_of", "no labels", "column 'text' has no labels",
       column([](ColumnTexts& c) { c.column.kind = Column::Kind::label; })},
      {"rows_of", "a negative length", "max_length must not be negative",
       [&w] {
         rows_of({{{"text"}, &lines, &w.words}}, -1, {});
       }},
      {"rows_of", "columns of other lengths", "column 'more' has 1 texts, and column 'text' 2",
       [&w] {
         rows_of({{{"text"}, &lines, &w.words}, {{"more"}, &one, &w.words}}, 0, {});
       }},
      {"rows_of", "no place", "is not a finite number",
       [] {
         rows_of({{{"n", Column::Kind::number}, &lines}}, 0, {});
       }},
      {"documents_of", "no start", "has no start and end tokens", [&w] { documents_of({"a"}, w.bare); }},
      {"documents_of", "a negative length", "max_length must not be negative",
       [&w] { documents_of({"a"}, w.words, -1); }},
      {"pairs_of", "a target missing", "a target for every source",
       [&w] {
         pairs_of({{"a"}, {}}, w.words, w.words);
       }},
      {"packed", "no room", "at least one token",
       [] {
         packed(DataRows{{{"text", Column::Kind::target}}, {}}, 0);
       }},
      {"packed", "other columns", "a single column, a target",
       [] {
         packed(DataRows{{{"text"}}, {{DataRows::Cell{}}}}, 8);
       }},
      {"ChatTemplate::encode", "no messages", "the chat has no messages", [&w] { plain_chats().encode(w.words, {}); }},
      {"ChatTemplate::encode", "no end", "the tokenizer has no end token",
       [&w] {
         plain_chats().encode(w.bare, {{"user", "a"}, {"assistant", "b"}});
       }},
      {"ChatTemplate::encode", "no UTF-8", "UTF-8",
       [&w] {
         plain_chats().encode(w.words, {{"user", "\xFF"}});
       }},
      {"ChatTemplate::encode", "another role", "not '\\xFF'",
       [&w] {
         plain_chats().encode(w.words, {{"\xFF", "a"}});
       }},
      {"ChatTemplate::prompt", "no messages", "the chat has no messages", [&w] { plain_chats().prompt(w.words, {}); }},
      {"split_documents", "empty", "", [] { CHECK(split_documents("", DocumentEnd::line).empty()); }},
  };
}

std::vector<Row> rows_of_all(World& w) {
  std::vector<Row> all = rows_of_tokenizers(w);
  for (Row& row : rows_of_texts(w)) all.push_back(std::move(row));
  return all;
}
}  // namespace

TEST_CASE("misuse of tokenizers, texts and batches is an Error, or works as the table says") {
  check_rows<World>(rows_of_all);
}

TEST_CASE("the table has every function of tokenizers, texts and batches that can be misused") {
  check_complete<World>(rows_of_all,
                        {"tokenizers.hpp", "text.hpp", "chats.hpp", "csv.hpp", "array_batches.hpp", "minibatches.hpp"},
                        {"ChatTemplate::end_of_answer",
                         "ChatTemplate::is_published_as",
                         "ChatTemplate::name",
                         "ChatTemplate::special_tokens",
                         "ChatTemplate::to_json",
                         "TokenSequence::size",
                         "TokenSequence::read",
                         "Tokenizer::token_of",
                         "Tokenizer::size",
                         "Tokenizer::encode",
                         "Tokenizer::decode",
                         "Tokenizer::pieces",
                         "Tokenizer::pad",
                         "Tokenizer::unknown",
                         "Tokenizer::start",
                         "Tokenizer::end",
                         "Tokenizer::ends",
                         "Tokenizer::begins",
                         "Tokenizer::to_json",
                         "Tokenizer::files",
                         "Batches::rows",
                         "Batches::order",
                         "RowBatches::order",
                         "TextBatches::order",
                         "ArrayBatches::order",
                         "Batches::columns",
                         "Batches::blank",
                         "Batches::epoch_batches",
                         "Batches::draws",
                         "RowBatches::draws",
                         "RowDraws::rate",
                         "Batches::training",
                         "Batches::training_continues",
                         "Batches::training_place",
                         "Batches::validation_batches",
                         "Batches::validation",
                         "Batches::validation_continues",
                         "Batches::validation_sample",
                         "TextBatches::rows",
                         "TextBatches::columns",
                         "ArrayBatches::rows",
                         "ArrayBatches::columns",
                         "ArrayBatches::blank",
                         "ArrayBatches::epoch_batches",
                         "ArrayBatches::validation_batches",
                         "MiniBatches::epoch",
                         "MiniBatches::set_epoch",
                         "RowBatches::rows",
                         "RowBatches::columns",
                         "RowBatches::blank",
                         "RowBatches::epoch_batches",
                         "RowBatches::validation_batches"},
                        60);
}
}  // namespace misuse::texts
