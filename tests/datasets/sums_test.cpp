#include <doctest/doctest.h>

#include <set>

#include "programs.hpp"

using xtape::read_lines;

namespace {
/// The correct sum of a line, and the sum that it states.
std::pair<int, int> read_sum(const std::string& line) {
  const std::size_t plus = line.find('+'), equals = line.find('=');
  return {std::stoi(line.substr(0, plus)) + std::stoi(line.substr(plus + 1, equals - plus - 1)),
          std::stoi(line.substr(equals + 1))};
}
}  // namespace

TEST_CASE("every sum of two-digit numbers occurs once and is correct, and 2,000 are held out") {
  const xtape::test::Folder folder;
  REQUIRE(run_program("sums", folder.path()) == 0);
  const auto training = read_lines(folder.path() + "/training.txt");
  const auto held_out = read_lines(folder.path() + "/validation.txt");
  CHECK(training.size() == 8000);
  CHECK(held_out.size() == 2000);
  std::set<std::string> all(training.begin(), training.end());
  all.insert(held_out.begin(), held_out.end());
  CHECK(all.size() == 10000);
  CHECK(all.count("47+85=132") == 1);
  CHECK(all.count("7+5=12") == 1);
  for (const std::string& line : all) CHECK(read_sum(line).first == read_sum(line).second);
}

TEST_CASE("sums with leading zeros, or with their last digit first; invalid arguments are errors") {
  const xtape::test::Folder folder;
  REQUIRE(run_program("sums", folder.path() + " 2 100 reversed padded") == 0);
  const auto lines = read_lines(folder.path() + "/training.txt");
  CHECK(lines.size() == 9900);
  const std::set<std::string> all(lines.begin(), lines.end());
  CHECK(all.count("47+85=231") + all.count("07+05=210") >= 1);
  for (const std::string& line : lines) CHECK(line.size() == 9);
  REQUIRE(run_program("sums", folder.path() + "/one 1") == 0);
  CHECK(read_lines(folder.path() + "/one/validation.txt").size() == 20);
  for (const char* wrong : {"", "x 4", "x 2 10000", "x 2 0", "x 2 10 backwards", "/dev/null/x"})
    CHECK(run_program("sums", wrong) == 2);
}
