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
