#include <doctest/doctest.h>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

using namespace xtape;

TEST_CASE("escaped writes terminal control characters as hexadecimal bytes") {
  CHECK(escaped("a\tb\nc") == "a\tb\nc");
  CHECK(escaped("é, €, 𝄞, \\x1B") == "é, €, 𝄞, \\x1B");
  CHECK(escaped("\x1B[31mred\r\x7F") == "\\x1B[31mred\\x0D\\x7F");
  CHECK(escaped(std::string("\0", 1)) == "\\x00");
  CHECK(escaped("\u009B2J\u00A0") == "\\xC2\\x9B2J\u00A0");  // U+009B, the one-character control sequence introducer
  CHECK(escaped("\x9B\xFF\xC3") == "\\x9B\\xFF\\xC3");
  CHECK(escaped("").empty());
}

TEST_CASE("control characters from data are escaped in error messages") {
  const FileError error("cannot read '\x1B]0;title\x07'\nline 2");
  CHECK(std::string(error.what()) == "cannot read '\\x1B]0;title\\x07'\nline 2");
  CHECK(std::string(Error(error.what()).what()) == error.what());

  Error placed("shapes differ");
  placed.name_op("ad\x1B[2Jd");
  placed.name_location("h\x1B[2J, line 3");
  CHECK(std::string(placed.what()) == "h\\x1B[2J, line 3: ad\\x1B[2Jd: shapes differ");
}
