#include "xtape/csv.hpp"

#include <doctest/doctest.h>

#include <cmath>

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
        ", line 4: column 'b': 'x' is not a finite number; if it is a column of text, name the columns to read");
  CHECK(complaint("a,b\n1,inf\n") ==
        ", line 2: column 'b': 'inf' is not a finite number; if it is a column of text, name the columns to read");
  CHECK(complaint("a,b\n1,1e50\n") == ", line 2: column 'b': '1e50' is not a finite number");
  CHECK(complaint("a,b\n1,2,3\n") == ", line 2: there are 3 fields, not 2 as in the first line");
  CHECK(complaint("a,b\n\"1,2\n") == ", line 2: a quotation mark is not closed");
  CHECK(complaint("a, a\n1,2\n") == ", line 1: two columns have the name 'a'");
  CHECK(complaint("alpha,b\n1,2\n", {.columns = {"alpa"}}) ==
        " has no column 'alpa'; did you mean 'alpha'? (columns: alpha, b)");
  CHECK(complaint("a,b\n1,2\n", {.labels = {"word"}}) == " has no column 'word' (columns: a, b)");
  CHECK(complaint("a;b\n1;2\n", {.columns = {"b"}}) ==
        " has no column 'b' (columns: a;b); is the character between the fields ';'?");
  CHECK(complaint("\n\n") == " has no lines");
  CHECK(read_csv(TemporaryFile("empty.csv", "a,b\n").path()).rows == 0);
}

}  // namespace csv_files
