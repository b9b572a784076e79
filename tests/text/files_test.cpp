#include <doctest/doctest.h>
#include <zlib.h>

#include "temporary_file.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {

using Lines = std::vector<std::string>;

/// `text` compressed by gzip.
std::string compressed(const std::string& text) {
  const TemporaryFile file("compressing.gz");
  gzFile out = gzopen(file.path().c_str(), "wb");
  REQUIRE(gzwrite(out, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  REQUIRE(gzclose(out) == Z_OK);
  return read_text(file.path());
}

Lines lines_of(const std::string& name, const std::string& bytes) {
  return read_lines(TemporaryFile(name, bytes).path());
}

/// A text that is long enough for its compressed form to be read in several pieces.
std::string long_text() {
  std::string text;
  for (unsigned i = 0; i < 60000; ++i) text += "Zeile " + std::to_string(i * 2654435761U) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a whole file is read, and an error names a file that cannot be read") {
  CHECK_THROWS_WITH_AS(read_text("/nonexistent/file"), "cannot read /nonexistent/file: No such file or directory",
                       FileError);
  CHECK_THROWS_WITH_AS(read_text("/tmp"), "cannot read /tmp: Is a directory", FileError);
  CHECK(read_text(TemporaryFile("empty.txt", "").path()).empty());
  CHECK(read_text(TemporaryFile("text.txt", "a\r\nb").path()) == "a\r\nb");
}

TEST_CASE("lines have no line ends") {
  CHECK(lines_of("lines.txt", "Zwei Hunde\nüber\r\n\n \nlast") == Lines{"Zwei Hunde", "über", "", " ", "last"});
  CHECK(lines_of("lines.txt", "one\n") == Lines{"one"});
  CHECK(lines_of("lines.txt", "\n\r\n") == Lines{"", ""});
  CHECK(lines_of("lines.txt", "a\rb\n") == Lines{"a\rb"});
  CHECK(lines_of("lines.txt", "").empty());
}

TEST_CASE("a compressed file gives the lines of the plain one, with any file name") {
  const std::string text = long_text();
  const Lines plain = lines_of("lines.txt", text);
  CHECK(plain.size() == 60000);
  CHECK(lines_of("lines.gz", compressed(text)) == plain);
  CHECK(lines_of("lines", compressed(text)) == plain);
  CHECK(lines_of("two.gz", compressed("a\nb") + compressed("c\nd\n")) == Lines{"a", "bc", "d"});
  CHECK(lines_of("empty.gz", compressed("")).empty());
}

TEST_CASE("a compressed file that is cut off or damaged at any byte is an error") {
  const std::string whole = compressed(long_text());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{9}, std::size_t{11},
                                 whole.size() / 2, whole.size() - 8, whole.size() - 1}) {
    CAPTURE(size);
    const TemporaryFile file("cut.gz", whole.substr(0, size));
    CHECK_THROWS_WITH_AS(read_lines(file.path()), doctest::Contains(("cannot read " + file.path()).c_str()), FileError);
  }
  for (const std::size_t place : {whole.size() / 2, whole.size() - 6, whole.size() - 2}) {
    CAPTURE(place);
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x55);
    const TemporaryFile file("damaged.gz", damaged);
    CHECK_THROWS_WITH_AS(read_lines(file.path()), doctest::Contains("damaged"), FileError);
  }
  CHECK_THROWS_WITH_AS(lines_of("plain.gz", "plain\n"), doctest::Contains("not compressed by gzip"), FileError);
  CHECK_THROWS_WITH_AS(read_lines("/nonexistent/file"), "cannot read /nonexistent/file: No such file or directory",
                       FileError);
  CHECK_THROWS_WITH_AS(read_lines("/tmp"), "cannot read /tmp: Is a directory", FileError);
}

TEST_CASE("a compressed file that unpacks to far too much text is an error before it fills the memory") {
  const TemporaryFile file("bomb.gz", compressed(std::string(80 << 20, '\0')));
  CHECK_THROWS_WITH_AS(read_lines(file.path()), doctest::Contains("over 200 times as much, too much for a text"),
                       FileError);
  CHECK_THROWS_WITH_AS(read_lines(file.path()), doctest::Contains(file.path().c_str()), FileError);
  std::string repeated;
  for (int i = 0; i < 10000; ++i) repeated += std::string(1023, 'a') + "\n";
  CHECK(lines_of("repeated.gz", compressed(repeated)).size() == 10000);  // the limit does not apply to small files
}
