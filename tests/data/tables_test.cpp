// Files of rows, one per line.
#include <doctest/doctest.h>

#include "folders.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using Strings = std::vector<std::string>;

namespace {
std::string file(const test::Folder& folder, const std::string& text) {
  const std::string path = folder.path() + "/table";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
}  // namespace

TEST_CASE("pairs are lines of a source, a tab and a target; further fields are ignored") {
  const test::Folder folder;
  const PairTexts pairs = read_pairs(file(folder, "ein hund\ta dog\r\nzwei\t\tby hand\n\tnothing\textra\tmore"));
  CHECK(pairs.source == Strings{"ein hund", "zwei", ""});
  CHECK(pairs.target == Strings{"a dog", "", "nothing"});
  const std::string wrong = file(folder, "a\tb\nno tab here\n");
  CHECK_THROWS_WITH_AS(read_pairs(wrong),
                       (wrong + ", line 2: a row must have 2 fields separated by tabs, got 1").c_str(), FileError);
  CHECK_THROWS_AS(read_pairs(folder.path() + "/none"), FileError);
}

TEST_CASE("every line of a table has the same number of fields, which can be quoted if the delimiter is a comma") {
  const test::Folder folder;
  const std::string path = file(folder, "name,size\n\"a, b\",3\n\"say \"\"hi\"\"\",4\nplain \"x\",\n");
  const TableOptions commas = {.columns = 2, .delimiter = ',', .skip_lines = 1};
  const TableTexts table = read_table(path, commas);
  CHECK(table[0] == Strings{"a, b", "say \"hi\"", "plain \"x\""});
  CHECK(table[1] == Strings{"3", "4", ""});
  CHECK_THROWS_WITH_AS(read_table(path, {.columns = 1, .delimiter = ','}),
                       doctest::Contains("line 1: a row must have 1 fields separated by ',', got more"), FileError);
  CHECK_THROWS_WITH_AS(read_table(file(folder, "a,b\n\"a,b\n"), commas),
                       doctest::Contains("line 2: a quotation mark is not closed"), FileError);
  CHECK(read_table(file(folder, "\"a\t1\n"))[0] == Strings{"\"a"});  // quotation marks have no meaning with tabs
  CHECK(read_table(file(folder, ""), commas)[0].empty());
}

TEST_CASE("blank lines are no rows, and quoted fields may have line breaks") {
  const test::Folder folder;
  const PairTexts pairs = read_pairs(file(folder, "\xEF\xBB\xBF\n a\tb\r\n\r\n  \n\t\n\"c\td\n\n\n"));
  CHECK(pairs.source == Strings{" a", "", "\"c"});
  CHECK(pairs.target == Strings{"b", "", "d"});
  CHECK(pairs.lines == std::vector<std::size_t>{2, 5, 6});
  const TableOptions commas = {.columns = 2, .delimiter = ',', .skip_lines = 1};
  CHECK(read_table(file(folder, "x,y\n\n\"a\n\n,\"\"b\",1\n \t\nc,2\n\n"), commas) ==
        TableTexts{{"a\n\n,\"b", "c"}, {"1", "2"}});
  CHECK_THROWS_WITH_AS(read_table(file(folder, "x,y\na,\"b\nc,d\n"), commas),
                       doctest::Contains("line 2: a quotation mark is not closed"), FileError);
  CHECK_THROWS_WITH_AS(read_table(file(folder, "x,y\na,1\n\"b\nc\n"), commas),
                       doctest::Contains("line 3: a quotation mark is not closed"), FileError);
  CHECK_THROWS_WITH_AS(
      read_table(file(folder, "x,y\n\"a\n\nb\"\n"), commas),
      doctest::Contains("line 2: a row must have 2 fields separated by ',', got 1 (with a quoted field, the "
                        "row goes on to line 4)"),
      FileError);
  CHECK_THROWS_WITH_AS(read_table(file(folder, "a\n"), {.columns = 1, .delimiter = '\n'}),
                       doctest::Contains("cannot be a quotation mark or a line end"), Error);
}
