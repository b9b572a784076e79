#include "xtape/csv.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "temporary_file.hpp"
#include "xtape/xtensor.hpp"

namespace csv_files {

using namespace xtape;

TEST_CASE("read_csv: columns of numbers and of labels, by the names of the header") {
  const TemporaryFile file("table.csv",
                           "\xEF\xBB\xBFlength,\"width, in cm\" ,species,weight\r\n"
                           "1.5,2,cat,-3e2\r\n"
                           "\r\n"
                           " 2 ,\"4\",\"a \"\"dog\"\"\",1e-50\n"
                           "0,6,cat,7\n");
  const CsvTable table = read_csv(file.path(), {.labels = {"species"}});
  CHECK(table.rows == 3);
  CHECK(table.columns.names() == std::vector<std::string>{"length", "width, in cm", "species", "weight"});
  CHECK(table.at("length").to<float>() == xt::xarray<float>{1.5F, 2, 0});
  CHECK(table.at("species").to<std::int64_t>() == xt::xarray<std::int64_t>{1, 0, 1});
  CHECK(table.labels.at("species") == std::vector<std::string>{"a \"dog\"", "cat"});
  CHECK(table.at("weight").to<float>() == xt::xarray<float>{-300, 0, 7});
  CHECK(table.matrix({"weight", "length"}).to<float>() == xt::xarray<float>{{-300, 1.5F}, {0, 2}, {7, 0}});
  CHECK(table.matrix_without({"weight"}).to<float>() == xt::xarray<float>{{1.5F, 2}, {2, 4}, {0, 6}});
  CHECK_THROWS_AS(table.matrix({"species"}), DtypeError);
  CHECK(read_csv(file.path(), {.columns = {"weight"}, .labels = {"species"}}).at("species")(0) == 1);
  CHECK_THROWS_WITH_AS(table.matrix_without({"lenght"}), doctest::Contains("did you mean 'length'"), Error);
  CHECK_THROWS_AS(table.matrix({}), Error);
  const CsvTable some = read_csv(file.path(), {.columns = {"weight", "width, in cm"}, .dtype = Dtype::float64});
  CHECK(some.columns.names() == std::vector<std::string>{"weight", "width, in cm"});
  CHECK(some.at("weight").to<double>()(1) == 1e-50);
}

TEST_CASE("read_csv: without a header, other separators, missing values") {
  const TemporaryFile file("table.tsv", "1\tNA\n\t4\n");
  const CsvTable table = read_csv(file.path(), {.header = false, .separator = '\t', .missing = true});
  CHECK(table.columns.names() == std::vector<std::string>{"0", "1"});
  CHECK(table.at("0")(0) == 1);
  CHECK(std::isnan(table.at("0")(1)));
  CHECK(std::isnan(table.at("1")(0)));
  CHECK_THROWS_WITH_AS(
      read_csv(file.path(), {.header = false, .separator = '\t'}),
      (file.path() +
       ", line 1: column '1': the value is missing; remove the row or fill it in (`missing` reads it as NaN)")
          .c_str(),
      FileError);
}

TEST_CASE("read_csv: an empty label is an error with its place, or has the index -1") {
  const TemporaryFile file("table.csv", "n,word\n1,b\n2, \n3, a\n");
  CHECK_THROWS_WITH_AS(read_csv(file.path(), {.labels = {"word"}}),
                       doctest::Contains("table.csv, line 3: column 'word': the label is empty"), FileError);
  const CsvTable table = read_csv(file.path(), {.labels = {"word"}, .missing = true});
  CHECK(table.labels.at("word") == std::vector<std::string>{"a", "b"});
  const std::int64_t* words = table.at("word").as<std::int64_t>();
  CHECK(std::vector<std::int64_t>(words, words + 3) == std::vector<std::int64_t>{1, -1, 0});
}

TEST_CASE("read_csv: errors name file, line and column") {
  const auto complaint = [](const std::string& text, const CsvOptions& options = {}) -> std::string {
    const TemporaryFile file("table.csv", text);
    try {
      read_csv(file.path(), options);
    } catch (const Error& error) {
      return std::string(error.what()).substr(file.path().size());
    }
    return "";
  };
  CHECK(complaint("a,b\n1,2\n\n3,x\n") ==
        ", line 4: column 'b': 'x' is not a finite number: write a decimal number such as 12, -0.5 or 1e-3; if it is a "
        "column of text, name the columns to read");
  CHECK(
      complaint("a,b\n1,inf\n") ==
      ", line 2: column 'b': 'inf' is not a finite number: write a decimal number such as 12, -0.5 or 1e-3; if it is a "
      "column of text, name the columns to read");
  CHECK(complaint("a,b\n1,1e50\n") ==
        ", line 2: column 'b': '1e50' is not a finite number: the largest float32 is 3.4e38");
  CHECK(complaint("a,b\n1,2,3\n") == ", line 2: there are 3 fields, not 2 as in the first row");
  CHECK(complaint("a,b\n1,2\n\n3,\"4\n5,6\n") == ", line 4: a quotation mark is not closed");
  CHECK(complaint("a,b\n3,\"4\n5,6\n7\",8\n9,10\n") ==
        ", line 2: there are 3 fields, not 2 as in the first row (with a quoted field, the row goes on to line 4)");
  CHECK(complaint("a, a\n1,2\n") == ", line 1: two columns have the name 'a'");
  CHECK(complaint("alpha,b\n1,2\n", {.columns = {"alpa"}}) ==
        " has no column 'alpa'; did you mean 'alpha'? (columns: alpha, b)");
  CHECK(complaint("a,b\n1,2\n", {.labels = {"word"}}) == " has no column 'word' (columns: a, b)");
  CHECK(complaint("a;b\n1;2\n", {.columns = {"b"}}) ==
        " has no column 'b' (columns: a;b); is the character between the fields ';'?");
  CHECK(complaint("\n\n") == " has no lines");
  CHECK(complaint("a,b\xFFx\n1,2\n") == ", line 1: the name of column 2, 'b\\xFFx': the text is not UTF-8 at byte 1");
  CHECK(complaint("a,b\n1,x\n2,y\xE9\n", {.labels = {"b"}}) == ", line 3: column 'b': the text is not UTF-8 at byte 1");
  CHECK(complaint("a,b\n1,\"x\ny\"\n", {.labels = {"b"}}) ==
        ", line 2: column 'b': the label 'x\\ny' has a line break");
  CHECK(read_csv(TemporaryFile("empty.csv", "a,b\n").path()).rows == 0);
}

TEST_CASE("read_csv: quoted fields have separators, marks and line breaks, as in RFC 4180") {
  const TemporaryFile file("quoted.csv",
                           "n,\"a\r\nname\",\"m\"\"n\"\n"
                           "1,\"x, \"\"y\"\"\r\n\n  z\",2\r\n"
                           "  \t \n"
                           "\"3\",plain \"mark\",\"\"\n"
                           " \"5\" ,\"a\"b\"c\",\" 6\t\"\n\n");
  CHECK_THROWS_WITH_AS(read_csv(file.path(), {.columns = {"n"}}),
                       doctest::Contains("line 8: column 'n': ' \"5\" ' is not a finite number"), FileError);
  const CsvTable table = read_csv(file.path(), {.columns = {"m\"n"}, .missing = true});
  CHECK(table.rows == 3);
  CHECK(table.at("m\"n")(0) == 2);
  CHECK(std::isnan(table.at("m\"n")(1)));
  CHECK(table.at("m\"n")(2) == 6);
  CHECK_THROWS_WITH_AS(read_csv(file.path(), {.columns = {"m\"n"}, .labels = {"a name"}, .missing = true}),
                       doctest::Contains("line 3: column 'a name': the label 'x, \"y\"\\n\\n  z' has a line break"),
                       FileError);
  // With tabs, quotation marks are ordinary characters, and a line of tabs has missing values.
  const TemporaryFile tabs("tabs.tsv", "w\tx\n\"a\t1\n\t\n\"b\"\t2\n");
  const CsvTable words = read_csv(tabs.path(), {.separator = '\t', .labels = {"w"}, .missing = true});
  CHECK(words.labels.at("w") == std::vector<std::string>{"\"a", "\"b\""});
  CHECK(words.rows == 3);
  CHECK(std::isnan(words.at("x")(1)));
  CHECK_THROWS_WITH_AS(read_csv(tabs.path(), {.separator = '"'}), doctest::Contains("cannot be a quotation mark"),
                       Error);
}

TEST_CASE("read_csv: numbers are decimal, and those that are too small are 0") {
  const auto number = [](const std::string& field, Dtype dtype) {
    return read_csv(TemporaryFile("numbers.csv", "x\n" + field + "\n").path(), {.dtype = dtype}).at("x").clone();
  };
  const std::vector<std::pair<std::string, double>> accepted = {{"+1", 1},
                                                                {"1.", 1},
                                                                {".5", 0.5},
                                                                {"-.5e1", -5},
                                                                {"+.5", 0.5},
                                                                {"1e5", 1e5},
                                                                {"1E+5", 1e5},
                                                                {"-0", 0},
                                                                {"007", 7},
                                                                {"\t1 ", 1},
                                                                {"1e-400", 0},
                                                                {"-1e-400", 0},
                                                                {"0." + std::string(400, '0') + "1", 0},
                                                                {"0e99999", 0},
                                                                {"1e-99999999999999999999", 0},
                                                                {"5e-324", 5e-324},
                                                                {"2.2250738585072011e-308", 2.2250738585072011e-308},
                                                                {"1.7976931348623157e308", 1.7976931348623157e308},
                                                                {"1" + std::string(400, '0') + "e-400", 1}};
  for (const auto& each : accepted) {
    const std::string& field = each.first;
    const double value = each.second;
    CAPTURE(field);
    CHECK(number(field, Dtype::float64).as<double>()[0] == value);
    if (value < 1e300) CHECK(number(field, Dtype::float32).as<float>()[0] == static_cast<float>(value));
  }
  CHECK(std::signbit(number("-1e-400", Dtype::float64).as<double>()[0]));
  CHECK(std::signbit(number("-1e-50", Dtype::float32).as<float>()[0]));
  CHECK(number("1e-45", Dtype::float32).as<float>()[0] == std::numeric_limits<float>::denorm_min());
  CHECK(number("16777217", Dtype::float32).as<float>()[0] == 16777216);
  for (const std::string field :
       {"0x10", "1_000",     "\"1,000\"", "\"1,5\"", "\u0661", "\u22121", "1d5",  "1f",     "1e",     "e5",
        ".",    "+",         "-",         "+-1",     "--1",    "++1",     "+ 1",  "1 2",    "1e5.0",  "inf",
        "-inf", "+Infinity", "1%",        "$1",      "(1)",    "True",    "NaN1", "nan(1)", "\u00a01"}) {
    CAPTURE(field);
    for (const Dtype dtype : {Dtype::float32, Dtype::float64})
      CHECK_THROWS_WITH_AS(number(field, dtype), doctest::Contains("is not a finite number: write a decimal number"),
                           FileError);
  }
  const std::vector<std::string> large = {"1e400", "-1e400", "1e99999999999999999999", "1" + std::string(400, '0')};
  for (const std::string& field : large) {
    CAPTURE(field);
    CHECK_THROWS_WITH_AS(number(field, Dtype::float64), doctest::Contains("the largest float64 is 1.8e308"), FileError);
    CHECK_THROWS_WITH_AS(number(field, Dtype::float32), doctest::Contains("the largest float32 is 3.4e38"), FileError);
  }
  CHECK_THROWS_WITH_AS(number("3.5e38", Dtype::float32), doctest::Contains("the largest float32 is 3.4e38"), FileError);
  for (const char* word :
       {"NA", "N/A", "n/a", "#N/A", "<NA>", "nan", "NaN", "-nan", "-NaN", "null", "NULL", "None", "?", " NA\t"}) {
    CAPTURE(word);
    CHECK_THROWS_WITH_AS(number(word, Dtype::float32), doctest::Contains("the value is missing; remove the row"),
                         FileError);
    const TemporaryFile file("missing.csv", "x\n" + std::string(word) + "\n");
    CHECK(std::isnan(read_csv(file.path(), {.missing = true}).at("x")(0)));
  }
}

}  // namespace csv_files
