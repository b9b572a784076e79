// Files of tapes with random damage: each is refused with an error, or gives a tape that plays.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>

#include "../small_plays.hpp"
#include "drawer.hpp"
#include "tape/tape_json.hpp"

using namespace xtape;
using namespace xtape::fuzz;

namespace {
/// The places in `text` right after each `before`.
std::vector<std::size_t> places(const std::string& text, const std::string& before) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos;) found.push_back(at += before.size());
  return found;
}

/// Exchanges what follows two occurrences of `before`, up to the next `end`.
void exchange(std::string& text, const std::string& before, char end, Random& random) {
  const std::vector<std::size_t> all = places(text, before);
  if (all.empty()) return;
  const std::size_t to = random.pick(all), from = random.pick(all);
  const std::string word = text.substr(from, text.find(end, from) - from);
  text.replace(to, text.find(end, to) - to, word);
}

/// Replaces an integer.
void change_number(std::string& text, Random& random) {
  static const std::vector<std::string> numbers = {
      "0", "1", "2", "3", "-1", "7", "4", "5", "1000000", "2.0", "4611686018427387904", "9223372036854775807"};
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < text.size(); ++i)
    if (std::isdigit(text[i]) && (text[i - 1] == '[' || text[i - 1] == ',' || text[i - 1] == ':')) all.push_back(i);
  if (all.empty()) return;
  const std::size_t at = random.pick(all);
  std::size_t end = at;
  while (end < text.size() && std::isdigit(text[end])) ++end;
  text.replace(at, end - at, random.pick(numbers));
}

std::string damaged(std::string text, Random& random) {
  for (std::int64_t count = 1 + random.below(3); count > 0; --count) switch (random.below(7)) {
      case 0:
        exchange(text, "\"op\":\"", '"', random);
        break;
      case 1:
        exchange(text, "\"dtype\":\"", '"', random);
        break;
      case 2:
        exchange(text, "\"shape\":", '}', random);
        break;
      case 3:
        exchange(text, "\"attributes\":{", '}', random);
        break;
      case 4:
        exchange(text, "\"inputs\":", '"', random);
        break;
      default:
        change_number(text, random);
    }
  return text;
}
}  // namespace

TEST_CASE("tapes: files with damage are refused, or give tapes that play") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("xtape-damaged-" + std::to_string(getpid()))).string();
  std::size_t accepted = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const fuzz::Program program = draw(seed);
    Subject subject(program.mode, Floats::as_written);
    record(program, subject);
    subject.tape.save(folder);
    const ArrayFile arrays(folder + "/arrays.safetensors");
    const std::string text = text_of(subject.tape, {}).text;
    Random random(seed);
    for (int i = 0; i < 40; ++i) {
      const std::string changed = damaged(text, random);
      CAPTURE(seed);
      CAPTURE(i);
      try {
        const SavedTape saved = read_tape(JsonNode(changed, "tape", JsonErrors::file), arrays, {}, &ops());
        play_if_small(saved.tape);
        ++accepted;
      } catch (const FileError&) {
        ++refused;
      }
    }
  }
  std::filesystem::remove_all(folder);
  MESSAGE(accepted << " accepted, " << refused << " refused");
  CHECK(accepted > 1000);
  CHECK(refused > 1000);
}
