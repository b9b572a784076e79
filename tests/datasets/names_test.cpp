#include <doctest/doctest.h>

#include <map>
#include <set>

#include "programs.hpp"

using xtape::read_lines;

namespace {
const std::set<std::string> known = {"O", "B-PERSON", "I-PERSON", "B-DATE", "I-DATE", "B-MONEY", "I-MONEY"};

struct Split {
  std::set<std::string> sentences;  // their words
  std::size_t count = 0;
  std::map<std::string, std::set<std::string>> labels;  // by word
};

/// Reads a split and checks the form of its lines.
Split read_split(const std::string& path) {
  Split split;
  std::string words, before;
  for (const std::string& line : read_lines(path)) {
    if (line.empty()) {
      CHECK(before == "O");  // the full stop
      split.sentences.insert(words);
      ++split.count;
      words.clear(), before.clear();
      continue;
    }
    const std::size_t tab = line.find('\t');
    REQUIRE(tab != std::string::npos);
    const std::string word = line.substr(0, tab), label = line.substr(tab + 1);
    CHECK(!word.empty());
    CHECK(word.find_first_of(" \t") == std::string::npos);
    CHECK(known.count(label) == 1);
    // A word inside of a name follows one of the same name.
    if (label[0] == 'I') CHECK((before == label || before == "B" + label.substr(1)));
    split.labels[word].insert(label);
    words += word + ' ';
    before = label;
  }
  CHECK(words.empty());
  return split;
}
}  // namespace

TEST_CASE("sentences have names of people, dates and amounts, and words that the context alone decides") {
  const xtape::test::Folder folder;
  REQUIRE(run_program("names", folder.path()) == 0);
  const Split training = read_split(folder.path() + "/training.txt");
  const Split held_out = read_split(folder.path() + "/validation.txt");
  CHECK(training.count == 3000);
  CHECK(held_out.count == 500);
  for (const std::string& sentence : held_out.sentences) CHECK(training.sentences.count(sentence) == 0);
  CHECK(training.labels.at("May") == std::set<std::string>{"B-PERSON", "B-DATE", "I-DATE"});
  int numbers = 0;  // that are part of a date, an amount, or neither
  for (const auto& [word, labels] : training.labels)
    numbers += labels.count("O") + labels.count("B-MONEY") + labels.count("I-DATE") == 3 ? 1 : 0;
  CHECK(numbers >= 5);
  CHECK(training.labels.at("may") == std::set<std::string>{"O"});
  std::size_t last_names = 0;
  for (const auto& [word, labels] : held_out.labels) {
    if (labels != std::set<std::string>{"I-PERSON"}) continue;
    CHECK(training.labels.count(word) == 0);
    ++last_names;
  }
  CHECK(last_names > 50);
}

TEST_CASE("the number of sentences is chosen; invalid arguments are errors") {
  const xtape::test::Folder folder;
  REQUIRE(run_program("names", folder.path() + " 40 7") == 0);
  CHECK(read_split(folder.path() + "/training.txt").count == 40);
  CHECK(read_split(folder.path() + "/validation.txt").count == 7);
  for (const char* wrong : {"", "x 0", "x 10 0", "x 10 ten", "x 10 10 10", "/dev/null/x"})
    CHECK(run_program("names", wrong) == 2);
}
