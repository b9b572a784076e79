// Runs every input of tests/fuzz/corpus through the targets that libFuzzer runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "source_root.hpp"
#include "target.hpp"

namespace fs = std::filesystem;
using xtape::fuzz::Target;

namespace {
std::vector<fs::path> inputs_of(const std::string& target) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(xtape::source_root()) / "tests/fuzz/corpus" / target))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string bytes_of(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}
}  // namespace

TEST_CASE("inputs of the corpus are read or refused, and their invariants hold") {
  for (const Target& target : xtape::fuzz::targets()) {
    const std::vector<fs::path> paths = inputs_of(target.name);
    CHECK_MESSAGE(!paths.empty(), target.name);
    CHECK_NOTHROW_MESSAGE(target.run(""), target.name);
    for (const fs::path& path : paths) {
      const std::string bytes = bytes_of(path);
      CHECK_NOTHROW_MESSAGE(target.run(bytes), path.string());
    }
  }
}

TEST_CASE("inputs of the corpus that are truncated or changed in a byte are read or refused") {
  for (const Target& target : xtape::fuzz::targets())
    for (const fs::path& path : inputs_of(target.name)) {
      const std::string bytes = bytes_of(path);
      const std::size_t step = bytes.size() / 8 + 1;
      for (std::size_t at = 0; at < bytes.size(); at += step) {
        CHECK_NOTHROW_MESSAGE(target.run(bytes.substr(0, at)), path.string() << " cut off at byte " << at);
        for (const char byte : {'\0', '\n', '"', '\xff'}) {
          std::string changed = bytes;
          changed[at] = byte;
          CHECK_NOTHROW_MESSAGE(target.run(changed), path.string() << " with byte " << at << " changed");
        }
      }
    }
}

TEST_CASE("a message with a control character is detected") {
  using namespace xtape::fuzz;
  CHECK_THROWS_AS(accepted([]() -> int { throw xtape::Error(""); }), Broken);
  CHECK_THROWS_AS(accepted([]() -> int { throw std::runtime_error("of another library"); }), std::runtime_error);
  CHECK(!accepted([]() -> int { throw xtape::Error("\x1B"); }));
  CHECK(accepted([] { return 3; }) == 3);
}
