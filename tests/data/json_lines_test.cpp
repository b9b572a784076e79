// Files of JSON Lines: fields, their types, and errors with line and field.
#include "data/tables/json_lines.hpp"

#include <doctest/doctest.h>

#include "temporary_file.hpp"
#include "xtape/error.hpp"

using namespace xtape;

namespace {
RowTexts objects_in(const std::string& text, const std::vector<JsonField>& fields, std::int64_t max_line = 0) {
  const TemporaryFile file("rows.jsonl", text);
  return read_json_lines(file.path(), fields, {max_line});
}

void refuses_line(const std::string& text, const std::string& place, const std::string& words,
                  const JsonField& field = {"text"}) {
  CAPTURE(text);
  CHECK_THROWS_WITH_AS(objects_in(text, {field}), doctest::Contains(("rows.jsonl, line " + place).c_str()), FileError);
  CHECK_THROWS_WITH_AS(objects_in(text, {field}), doctest::Contains(words.c_str()), FileError);
}
}  // namespace

TEST_CASE("fields of JSON Lines are texts by column") {
  const RowTexts rows = objects_in(
      "\xEF\xBB\xBF{\"text\": \"a\\nb\", \"n\": [1, -2.50e1], \"at\": {\"de\": \"eins\"}, \"x.y\": true}\r\n"
      " \n"
      "{\"at\": {\"de\": \"zwei\", \"en\": 2}, \"x.y\": false, \"n\": [], \"text\": \"\"}",
      {{"at.de"}, {"text"}, {"x.y"}});
  CHECK(rows.columns == TableTexts{{"eins", "zwei"}, {"a\nb", ""}, {"true", "false"}});
  CHECK(rows.lines == std::vector<std::size_t>{1, 3});
}

TEST_CASE("lists of JSON Lines are numbers or words") {
  CHECK(objects_in("{\"n\": [1, 2.50]}\n", {{"n", 2}}).columns == TableTexts{{"1"}, {"2.50"}});
  CHECK(objects_in("{\"w\": [\"the\", \"end\"]}\n", {{"w", 0, true}}).columns == TableTexts{{"the end"}});
  refuses_line("{\"n\": [1]}", "1", "a list of 2 values belongs here, not of 1", {"n", 2});
  refuses_line("{\"w\": [\"two words\"]}", "1", "must be one word", {"w", 0, true});
  refuses_line("{\"w\": \"word\"}", "1", "an array belongs here", {"w", 0, true});
}

TEST_CASE("errors of JSON Lines have the line and the field") {
  const std::string good = "{\"text\": \"a\"}\n";
  refuses_line(good + good + "{\"text\": \"b\"", "3, column 13", "but the text ends");
  refuses_line(good + "[1]", "2", "must be an object");
  refuses_line(good + "\"text\"", "2", "must be an object");
  refuses_line(good + "{\"txt\": \"b\"}", "2", "there is no field 'text'; did you mean 'txt'? (fields: txt)");
  refuses_line(good + "{}", "2", "there is no field 'text'");
  refuses_line(good + "{\"text\": null}", "2", "missing (null)");
  refuses_line(good + "{\"text\": {\"a\": 1}}", "2", "a string, a number, true or false");
  refuses_line(good + "{\"text\": \"\xFF\"}", "2, column 11", "not UTF-8");
  refuses_line(good + "{\"text\": \"a\", \"text\": \"b\"}", "2, column 15",
               "appears twice in one object, first in line 2");
  refuses_line("{\"a\": 1}", "1", "an object with the field 'b' belongs here", {"a.b"});
  refuses_line(good + "{\"text\": " + std::string(300, '[') + std::string(300, ']') + "}", "2", "nested");
}

TEST_CASE("a line of many megabytes is read or refused by its length") {
  const std::string line = "{\"text\": \"" + std::string(std::size_t{20} << 20, 'x') + "\"}\n";
  CHECK(objects_in(line, {{"text"}}).columns[0][0].size() == std::size_t{20} << 20);
  CHECK_THROWS_WITH_AS(objects_in(line, {{"text"}}, usual_max_line), doctest::Contains("line 1 has"), FileError);
  CHECK_THROWS_WITH_AS(objects_in(line, {{"text"}}, usual_max_line), doctest::Contains("max_line allows"), FileError);
  // An error shows the line in short.
  const TemporaryFile file("long.jsonl", line.substr(0, line.size() - 2));
  try {
    read_json_lines(file.path(), {{"text"}}, {});
    FAIL("the line has no end");
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).size() < 2000);
  }
}
