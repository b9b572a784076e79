#include "data/texts/long_text.hpp"

#include <algorithm>
#include <cmath>

#include "base/bytes/encodings.hpp"
#include "base/messages/wording.hpp"
#include "base/system/system.hpp"
#include "data/texts/texts.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
/// Returns the size and the time of modification of a regular file, or "" for other files.
std::string state_of(const std::string& path) {
  const std::optional<FileState> state = state_of_file(path);
  return state && state->kind == FileState::regular ? std::to_string(state->bytes) + " bytes, " + state->changed : "";
}

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

/// Computes checksum_of for bytes that arrive in pieces.
class Checksum {
 public:
  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), piece - piece_.size());
      piece_.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (piece_.size() == piece) end_piece();
    }
  }
  std::uint64_t value() {
    if (!piece_.empty()) end_piece();
    return checksum_of_pieces(checksums_);
  }

 private:
  static constexpr auto piece = static_cast<std::size_t>(checksum_piece);
  void end_piece() {
    checksums_.push_back(checksum_of_piece(piece_.data(), piece_.size()));
    piece_.clear();
  }
  std::string piece_;
  std::vector<std::uint64_t> checksums_;
};
}  // namespace

void LongText::add(const std::string& path, const ReadOptions& options) {
  File file{path, options, state_of(path), nullptr};
  if (file.state.empty()) file.text = std::make_shared<const std::string>(read_text(path, options));
  files_.push_back(std::move(file));
}

void LongText::add_text(const std::string& path, std::string text) {
  files_.push_back({path, {}, "", std::make_shared<const std::string>(std::move(text))});
}

std::string LongText::names() const {
  return joined(files_, [](const File& file) { return file.path; });
}

LongText LongText::divide(double fraction) {
  fraction_ = fraction;
  place_ = std::make_shared<std::optional<std::uint64_t>>();  // which copies of the whole text do not share
  checksum_.reset();
  LongText rest = *this;
  rest.is_rest_ = true;
  return rest;
}

void LongText::read_file(const File& file, const std::function<bool(std::string_view)>& take, const char* verb) {
  if (file.text) {
    take(*file.text);
    return;
  }
  const auto check = [&] {
    if (state_of(file.path) != file.state)
      throw FileError(file.path + " has changed since this program began to read it: start again");
  };
  check();
  stream_text(file.path, file.options, take, verb);
  check();
}

void LongText::read_all(const std::function<bool(std::string_view)>& take, const char* verb) const {
  char last = '\n';
  bool wanted = true;
  for (const File& file : files_) {
    if (last != '\n') wanted = take("\n");  // keeps the words of two files apart
    const auto next = [&](std::string_view piece) {
      if (!piece.empty()) last = piece.back();
      return wanted = take(piece);
    };
    if (wanted) read_file(file, next, verb);
  }
}

std::uint64_t LongText::place_of_division() const {
  if (*place_) return **place_;
  std::uint64_t characters = 0, place = 0;
  read_all(
      [&](std::string_view piece) {
        characters += static_cast<std::uint64_t>(std::ranges::count_if(piece, starts_character));
        return true;
      },
      "counting the characters of");
  auto left = static_cast<std::int64_t>(std::floor(static_cast<double>(characters) * *fraction_));
  read_all(
      [&](std::string_view piece) {
        const std::int64_t here = std::ranges::count_if(piece, starts_character);
        if (here <= left) {
          left -= here;
          place += piece.size();
          return true;
        }
        std::size_t at = 0;
        while (!starts_character(piece[at]) || left-- > 0) ++at;
        place += at;
        return false;
      },
      "looking for the validation split of");
  *place_ = place;
  return place;
}

void LongText::read(const std::function<void(std::string_view)>& take, const char* verb) const {
  const std::uint64_t place = fraction_ ? place_of_division() : 0;
  const std::uint64_t begin = is_rest_ ? place : 0, end = fraction_ && !is_rest_ ? place : UINT64_MAX;
  Checksum checksum;
  std::uint64_t at = 0;
  const auto next = [&](std::string_view piece) {
    const std::uint64_t first = std::clamp(begin, at, at + piece.size());
    const std::uint64_t last = std::clamp(end, first, at + piece.size());
    const std::string_view wanted = piece.substr(first - at, last - first);
    at += piece.size();
    if (!checksum_) checksum.add(wanted);
    if (!wanted.empty()) take(wanted);
    return at < end;
  };
  if (end > 0) read_all(next, verb);
  if (!checksum_) checksum_ = checksum.value();
}

void LongText::read_words(const std::function<void(const std::string&)>& take) const {
  constexpr std::size_t enough = 1 << 20;
  std::string held;
  read([&](std::string_view piece) {
    held += piece;
    if (held.size() < enough) return;
    const std::size_t space = held.find_last_of(" \t\r\n");
    if (space == std::string::npos) return;
    std::string rest = held.substr(space + 1);
    held.resize(space + 1);
    take(held);
    held = std::move(rest);
  });
  if (!held.empty()) take(held);
}

std::uint64_t LongText::checksum() const {
  if (!checksum_) read([](std::string_view) {});
  return *checksum_;
}

std::string LongText::identity() const {
  std::string identity = fraction_ ? (is_rest_ ? "rest " : "first ") + std::to_string(*fraction_) : "whole";
  for (const File& file : files_) {
    if (file.state.empty()) return "";
    identity += "\n" + file.path + ", " + file.state;
  }
  return identity;
}

void LongText::fail_at_line(const std::function<void(const std::string&)>& check, const std::string& otherwise) const {
  for (const File& file : files_) {
    std::string line;
    std::int64_t number = 1;
    const auto end_line = [&] {
      try {
        check(line);
      } catch (const Error& error) {
        throw Error(file.path + ", line " + std::to_string(number) + ": " + error.what());
      }
      line.clear();
      ++number;
    };
    read_file(
        file,
        [&](std::string_view piece) {
          for (std::size_t at = 0; at < piece.size();) {
            const std::size_t newline = piece.find('\n', at);
            const std::size_t end = newline == std::string_view::npos ? piece.size() : newline + 1;
            line += piece.substr(at, end - at);
            if (newline != std::string_view::npos) end_line();
            at = end;
          }
          return true;
        },
        "looking for the error in");
    if (!line.empty()) end_line();
  }
  throw Error(names() + ": " + otherwise);
}

std::string characters_of(const LongText& text) {
  std::vector<bool> seen;  // by code point, up to the largest so far
  std::string held;        // with the beginning of a character at its end
  const auto note = [&](std::size_t end) {
    for (std::size_t at = 0; at < end;) {
      const auto byte = static_cast<unsigned char>(held[at]);
      const char32_t character = byte < 0x80 ? (++at, byte) : next_character(held, at);
      if (character >= seen.size()) seen.resize(character + 1);
      seen[character] = true;
    }
    held.erase(0, end);
  };
  try {
    text.read([&](std::string_view piece) {
      held += piece;
      std::size_t end = held.size();  // leaves the last character to the next piece, which may have its end
      while (end > 0 && !starts_character(held[end - 1])) --end;
      note(end > 0 ? end - 1 : held.size());
    });
    note(held.size());
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    text.fail_at_line(check_utf8, error.what());
  }
  std::string characters;
  for (char32_t c = 0; c < seen.size(); ++c)
    if (seen[c]) append_character(characters, c);
  return characters;
}

}  // namespace xtape
