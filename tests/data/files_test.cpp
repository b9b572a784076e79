#include "base/system/files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <mutex>

#include "needs.hpp"
#include "temporary_file.hpp"
#include "xtape/csv.hpp"
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
  return read_file(file.path());
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

TEST_CASE("a byte-order mark at the beginning of a text is skipped, and UTF-16 is an error") {
  const std::string mark = "\xEF\xBB\xBF";
  CHECK(read_text(TemporaryFile("mark.txt", mark + "a\n" + mark + "b").path()) == "a\n" + mark + "b");
  CHECK(lines_of("mark.txt", mark + "a\r\n" + mark + "b") == Lines{"a", mark + "b"});
  CHECK(lines_of("mark.txt", mark).empty());
  CHECK(lines_of("mark.gz", compressed(mark + "a\nb")) == Lines{"a", "b"});
  CHECK(lines_of("two.gz", compressed(mark) + compressed(mark + "a")) == Lines{mark + "a"});
  CHECK(lines_of("mark.txt", "\xEF\xBB") == Lines{"\xEF\xBB"});
  const std::vector<std::pair<std::string, std::string>> others = {{{"\xFF\xFE\0\0a\0\0\0", 8}, "UTF-32"},
                                                                   {{"\0\0\xFE\xFF\0\0\0a", 8}, "UTF-32"},
                                                                   {{"\xFF\xFE"
                                                                     "a\0",
                                                                     4},
                                                                    "UTF-16"},
                                                                   {{"\xFE\xFF\0a", 4}, "UTF-16"},
                                                                   {"\xFF\xFE", "UTF-16"}};
  for (const auto& [text, encoding] : others) {
    const std::string expected = ": it is " + encoding + ", as its byte-order mark says: convert it to UTF-8";
    for (const std::string& bytes : {text, compressed(text)}) {
      const TemporaryFile file("other.txt", bytes);
      CHECK_THROWS_WITH_AS(read_text(file.path()), doctest::Contains(("cannot read " + file.path() + expected).c_str()),
                           FileError);
      CHECK_THROWS_WITH_AS(read_csv(file.path()), doctest::Contains(expected.c_str()), FileError);
      CHECK_THROWS_WITH_AS(read_pairs(file.path()), doctest::Contains(expected.c_str()), FileError);
    }
  }
}

TEST_CASE("a compressed text may have padding at its end, and read_text unpacks it") {
  CHECK(read_text(TemporaryFile("text.gz", compressed("a\r\nb")).path()) == "a\r\nb");
  CHECK(lines_of("padded.gz", compressed("a\n") + std::string(512, '\0')) == Lines{"a"});
  CHECK(lines_of("followed.gz", compressed("a\n") + "text") == Lines{"a"});
  CHECK(lines_of("empty_member.gz", compressed("") + compressed("a\n") + compressed("")) == Lines{"a"});
  CHECK_THROWS_WITH_AS(lines_of("second.gz", compressed("a\n") + compressed("b\n").substr(0, 15)),
                       doctest::Contains("the compressed file is cut off"), FileError);
  CHECK_THROWS_WITH_AS(lines_of("second.gz", compressed("a\n") + "\x1F\x8B other"), doctest::Contains("is damaged"),
                       FileError);
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

TEST_CASE("a line that is longer than allowed is an error that names file, line and length") {
  const std::string text = "short\n" + std::string(1000, 'a') + "\nend";
  const TemporaryFile file("long.txt", text);
  CHECK(read_text(file.path(), {.max_line = 1000}) == text);
  CHECK(read_lines(file.path(), {.max_line = 1000}).size() == 3);
  const std::string expected = "cannot read " + file.path() + ": line 2 has 1000 bytes, and max_line allows 999";
  CHECK_THROWS_WITH_AS(read_text(file.path(), {.max_line = 999}), doctest::Contains(expected.c_str()), FileError);
  CHECK_THROWS_WITH_AS(read_lines(file.path(), {.max_line = 999}), doctest::Contains(expected.c_str()), FileError);
  CHECK_THROWS_WITH_AS(read_table(file.path(), {.columns = 1, .reading = {.max_line = 999}}),
                       doctest::Contains(expected.c_str()), FileError);
  CHECK_THROWS_WITH_AS(read_pairs(file.path(), file.path(), {.max_line = 999}), doctest::Contains(expected.c_str()),
                       FileError);
  const TemporaryFile packed("packed.gz", compressed(text));
  CHECK_THROWS_WITH_AS(read_lines(packed.path(), {.max_line = 999}), doctest::Contains("line 2 has 1000 bytes"),
                       FileError);
  CHECK_THROWS_WITH_AS(read_text(file.path(), {.max_line = -1}), "max_line must not be negative, got -1", Error);
  // The lengths count across the pieces in which a file is read.
  const TemporaryFile large("large.txt", std::string(700000, 'b') + "\n" + std::string(500000, 'c'));
  CHECK(read_lines(large.path(), {.max_line = 700000}).size() == 2);
  CHECK_THROWS_WITH_AS(read_lines(large.path(), {.max_line = 699999}), doctest::Contains(": line 1 has "), FileError);
}

TEST_CASE("a line that never ends is an error") {
  for (const char* device : {"/dev/zero", "/dev/full"}) {
    CHECK_THROWS_WITH_AS(read_text(device, {.max_line = 1 << 20}), doctest::Contains("line 1 has "), FileError);
    CHECK_THROWS_WITH_AS(read_lines(device, {.max_line = 1 << 20}), doctest::Contains(" bytes or more"), FileError);
  }
}

TEST_CASE("a device that never ends is an error before it fills the memory" * needs_no_sanitizer() *
          needs_no_emulator()) {
  const TemporaryFile said("said.txt", "");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    struct rlimit limit {};
    limit.rlim_cur = limit.rlim_max = rlim_t{1} << 30;
    setrlimit(RLIMIT_DATA, &limit);
    for (const char* device : {"/dev/zero", "/dev/urandom"}) {
      try {
        read_text(device);
      } catch (const FileError& error) {
        std::ofstream(said.path(), std::ios::app) << error.what() << '\n';
      }
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  const Lines messages = read_lines(said.path());
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].find("cannot read /dev/zero: out of memory: its text takes ") == 0);
  CHECK(messages[0].find(" are left (ulimit -d: 1.00 GiB)") != std::string::npos);
  CHECK(messages[1].find("cannot read /dev/urandom: out of memory: ") == 0);
}

TEST_CASE("a pipe that is slow is named while it is read") {
  const TemporaryFile place("slow.fifo");
  std::remove(place.path().c_str());
  REQUIRE(mkfifo(place.path().c_str(), 0600) == 0);
  std::mutex mutex;
  Lines told;
  int pipe = -1;
  bool closed = false;
  // Writes only after it was told that nothing has come, and ends the pipe only after it was told of the five bytes.
  watch_inputs(
      [&](const std::string& sentence) {
        const std::lock_guard<std::mutex> lock(mutex);
        told.push_back(sentence);
        if (pipe < 0) {
          pipe = open(place.path().c_str(), O_WRONLY);
          [[maybe_unused]] const ssize_t written = write(pipe, "hello", 5);
        } else if (!closed && sentence.find("5 bytes so far") != std::string::npos) {
          closed = close(pipe) == 0;
        }
      },
      0.001);
  const std::string text = read_text(place.path());
  watch_inputs({});
  CHECK(text == "hello");
  REQUIRE(told.size() >= 2);
  CHECK(told.front() == "reading " + place.path() + ", a pipe: nothing has come so far");
  CHECK(told.back() == "reading " + place.path() + ", a pipe: 5 bytes so far");
  // A regular file ends, and nothing is told of it.
  watch_inputs([&](const std::string&) { CHECK(false); }, 0.001);
  CHECK(read_text(TemporaryFile("plain.txt", "text").path()) == "text");
  watch_inputs({});
}
