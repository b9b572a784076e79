// Lines of megabytes. A case takes minutes if a reader needs quadratic time in the length of a line.
#include <doctest/doctest.h>

#include "data/texts/texts.hpp"
#include "data/tokenizers/utf8.hpp"
#include "temporary_file.hpp"
#include "xtape/bleu.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {
std::string repeated(const std::string& text, std::size_t bytes) {
  std::string line;
  while (line.size() < bytes) line += text;
  return line;
}
constexpr std::size_t megabyte = 1 << 20;
}  // namespace

TEST_CASE("entities in a line of 16 megabytes are replaced in linear time") {
  CHECK(words_13a(repeated("&quot;", 16 * megabyte)).size() > 2 * megabyte);
  CHECK(words_13a(repeated("<skipped>", 16 * megabyte)).empty());
  CHECK(words_13a("a&amp;lt;b<skip<skipped>ped>").size() == 6);  // each rule applies to the result of the rule before
}

TEST_CASE("a file of one long line, or of empty lines alone, is read in linear time") {
  const TemporaryFile one("one_line", std::string(64 * megabyte, 'a'));
  CHECK(read_lines(one.path()).size() == 1);
  const TemporaryFile empty("empty_lines", std::string(4 * megabyte, '\n'));
  CHECK(read_lines(empty.path()).size() == 4 * megabyte);
  CHECK(split_documents(std::string(4 * megabyte, '\n'), DocumentEnd::blank_line).empty());
}

TEST_CASE("tokenizers encode a word of megabytes, or millions of words, in linear time") {
  const std::string word(4 * megabyte, 'b');
  CHECK(WordTokenizer({word}).encode(word) == Tokens{4});
  CHECK(CharacterTokenizer(word).encode(word).size() == word.size());
  const std::string line = repeated("b ", 4 * megabyte);
  CHECK(WordTokenizer({line}).encode(line).size() == 2 * megabyte);
  CHECK(lower_cased(repeated("Σ", megabyte)).size() == megabyte);
}
