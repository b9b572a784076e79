#include "xtape/small_vector.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

using xtape::SmallVector;

namespace {
using Few = SmallVector<int, 2>;

std::vector<int> counted(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}
}  // namespace

TEST_CASE("A small vector holds what a vector holds, within its room and beyond it") {
  for (int count = 0; count <= 9; ++count) {
    CAPTURE(count);
    const std::vector<int> expected = counted(count);
    Few pushed;
    for (const int item : expected) pushed.push_back(item);
    CHECK(pushed.size() == expected.size());
    CHECK(pushed.empty() == expected.empty());
    CHECK(std::vector<int>(pushed) == expected);
    CHECK(pushed == Few(expected));
    CHECK(pushed == Few(expected.begin(), expected.end()));
    pushed.push_back(count + 7);
    CHECK(pushed != Few(expected));
    CHECK(pushed[expected.size()] == count + 7);
  }
}

TEST_CASE("A copy of a small vector has elements of its own; a move empties the source") {
  for (int count = 0; count <= 5; ++count)
    for (int before = 0; before <= 5; ++before) {
      CAPTURE(count);
      CAPTURE(before);
      Few source(counted(count)), copied(counted(before)), moved(counted(before));
      copied = source;
      if (count > 0) source[0] = -1;
      CHECK(std::vector<int>(copied) == counted(count));
      if (count > 0) source[0] = 0;
      moved = std::move(source);
      CHECK(std::vector<int>(moved) == counted(count));
      CHECK(source.empty());  // NOLINT(bugprone-use-after-move): that is the promise
      source.push_back(3);
      CHECK(std::vector<int>(source) == std::vector<int>{3});
      const Few& self = copied;
      copied = self;
      CHECK(std::vector<int>(copied) == counted(count));
      copied.clear();
      CHECK(copied.empty());
    }
}

TEST_CASE("A small vector refuses more elements than its size can count") {
  Few few(counted(3));
  CHECK_THROWS_AS(few.reserve(std::size_t{std::numeric_limits<std::uint32_t>::max()} + 1), std::length_error);
  CHECK(std::vector<int>(few) == counted(3));
}
