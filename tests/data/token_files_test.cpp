// Files of tokens: those of other programs, and those that TokenWriter makes.
#include "data/texts/token_files.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "temporary_file.hpp"
#include "xtape/error.hpp"
#include "xtape/npy.hpp"

using namespace xtape;

namespace token_file_tests {
namespace {
template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

/// An .npy file as numpy.save writes it.
std::string npy(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string text = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" + elements;
}

std::string llm_c(std::int32_t version, std::int32_t count, const std::string& elements) {
  std::vector<std::int32_t> header(256);
  header[0] = 20240520, header[1] = version, header[2] = count;
  return bytes_of(header) + elements;
}

std::vector<std::int64_t> all_of(const TokenSequence& tokens) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(tokens.size()));
  tokens.read(0, tokens.size(), all.data());
  return all;
}

const std::vector<std::int64_t> numbers = {5, 0, 255, 7, 3};

std::vector<std::int64_t> read(const std::string& bytes, const TokenFileOptions& options = {}) {
  const TemporaryFile file("tokens.bin", bytes);
  CHECK(is_token_file(file.path()) == options.type.empty());
  return all_of(*open_tokens(file.path(), options));
}

std::string complaint(const std::string& bytes, const TokenFileOptions& options = {}) {
  const TemporaryFile file("tokens.bin", bytes);
  try {
    open_tokens(file.path(), options);
  } catch (const FileError& error) {
    std::string message = error.what();
    const std::string begin = "cannot read '" + file.path() + "': ";
    CHECK(message.starts_with(begin));
    return message.substr(begin.size());
  }
  return "nothing";
}
}  // namespace

TEST_CASE("token files of other programs") {
  const auto as = [](auto zero) { return bytes_of(std::vector<decltype(zero)>(numbers.begin(), numbers.end())); };
  CHECK(read(as(std::uint8_t{}), {"uint8"}) == numbers);
  CHECK(read(as(std::uint16_t{}), {"uint16"}) == numbers);
  CHECK(read(as(std::uint32_t{}), {"uint32"}) == numbers);
  CHECK(read(as(std::int32_t{}), {"int32"}) == numbers);
  CHECK(read(as(std::int64_t{}), {"int64"}) == numbers);
  CHECK(read("header" + as(std::uint16_t{}), {"uint16", 6}) == numbers);
  CHECK(read(npy("<u2", "(5,)", as(std::uint16_t{}))) == numbers);
  CHECK(read(npy("<u4", "(5,)", as(std::uint32_t{}))) == numbers);
  CHECK(read(npy("<i4", "(5,)", as(std::int32_t{}))) == numbers);
  CHECK(read(npy("<i8", "(5,)", as(std::int64_t{}))) == numbers);
  CHECK(read(llm_c(1, 5, as(std::uint16_t{}))) == numbers);
  CHECK(read(llm_c(2, 5, as(std::uint32_t{}))) == numbers);
  CHECK(read(bytes_of(std::vector<std::uint16_t>{65535}), {"uint16"}) == std::vector<std::int64_t>{65535});
  CHECK(read(bytes_of(std::vector<std::uint32_t>{4294967295U}), {"uint32"}) == std::vector<std::int64_t>{4294967295});
}

TEST_CASE("damaged token files are errors that say what is wrong") {
  CHECK(complaint("12345", {"uint16"}) ==
        "5 bytes are no whole number of tokens of type uint16: the file is truncated, or of another type");
  CHECK(complaint("123", {"uint16", 6}) == "it has 3 bytes, fewer than skip_bytes");
  CHECK(complaint(npy("<u2", "(5,)", "12345678")).find("take 10 bytes, but 8 follow the header") != std::string::npos);
  CHECK(complaint(npy("<f4", "(2,)", "12345678")).find("tokens must be integers along one axis") == 0);
  CHECK(complaint(npy("<i4", "(1, 2)", "12345678")).find("tokens must be integers along one axis") == 0);
  CHECK(complaint(llm_c(1, 5, "12345678")) ==
        "its header says 5 tokens, which with it take 1034 bytes, but it has 1032");
  CHECK(complaint(llm_c(1, -1, "")).find("its header says -1 tokens") == 0);
  CHECK(complaint(llm_c(3, 1, "12")) == "it has version 3 of llm.c's files; 1 and 2 are known");
  const TemporaryFile file("shrinks.bin", std::string(8000, 'x'));
  const auto tokens = open_tokens(file.path(), {"uint16"});
  std::filesystem::resize_file(file.path(), 100);
  std::int64_t token = 0;
  tokens->read(49, 1, &token);
  CHECK(token == 'x' * 257);
  CHECK_THROWS_WITH_AS(tokens->read(50, 1, &token), doctest::Contains("it ends at byte 100, but had 8000"), FileError);
}

TEST_CASE("tokens are written in the smallest type that holds the vocabulary") {
  for (const auto& each : {std::pair{256, 1}, {257, 2}, {65536, 2}, {65537, 4}}) {
    const auto [vocabulary, bytes] = each;
    CAPTURE(each.first);
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{600'000}}) {
      Tokens tokens(count);
      for (std::size_t i = 0; i < count; ++i)
        tokens[i] = static_cast<std::int32_t>((i * 7919 + static_cast<std::size_t>(vocabulary) - 1) %
                                              static_cast<std::size_t>(vocabulary));
      const TemporaryFile file("written.npy");
      TokenWriter writer(file.path(), vocabulary, 0);
      for (std::size_t at = 0; at < count; at += 300)
        writer.add(tokens.data() + at, std::min<std::size_t>(300, count - at));
      CHECK(writer.is_in_file());
      const auto made = writer.finish();
      CHECK(std::filesystem::file_size(file.path()) == 128 + count * static_cast<std::size_t>(bytes));
      const auto read = all_of(*made);
      CHECK(std::equal(read.begin(), read.end(), tokens.begin(), tokens.end()));
      const Array array = load_npy(file.path());
      CHECK(array.shape() == Shape{static_cast<std::int64_t>(count)});
      CHECK(array.as<std::int32_t>()[count - 1] == tokens.back());
    }
  }
}

TEST_CASE("few tokens stay in memory, and temporary files leave no name") {
  const Tokens tokens = {1, 2, 3, 4, 5, 6};
  TokenWriter few("", 10, 6);
  few.add(tokens.data(), tokens.size());
  CHECK(!few.is_in_file());
  CHECK(all_of(*few.finish()) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  const auto names = [] {
    std::size_t count = 0;
    const std::string mine = "xtape-tokens-" + std::to_string(getpid()) + "-";
    for (const auto& each : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
      count += each.path().filename().string().starts_with(mine) ? 1 : 0;
    return count;
  };
  TokenWriter many("", 10, 5);
  many.add(tokens.data(), tokens.size());
  CHECK(names() == 1);
  const auto made = many.finish();
  CHECK(names() == 0);
  CHECK(all_of(*made) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a disk that is full is an error") {
  const Tokens tokens(100);
  TokenWriter writer("/dev/full", 10, 0);
  writer.add(tokens.data(), tokens.size());
  CHECK_THROWS_WITH_AS(writer.finish(), "cannot write '/dev/full': No space left on device", FileError);
}

TEST_CASE("parts of sequences, and what they have") {
  const auto held = [](Tokens tokens) {
    TokenWriter writer("", 300);
    writer.add(tokens.data(), tokens.size());
    return writer.finish();
  };
  const auto part = part_of_joined({held({0, 1, 2}), held({}), held({3}), held({4, 5, 6, 7})}, 1, 7);
  CHECK(all_of(*part) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  std::int64_t two[2] = {};
  for (std::int64_t at = 0; at < 5; ++at) {
    part->read(at, 2, two);
    CHECK(two[0] == at + 1);
    CHECK(two[1] == at + 2);
  }
  const TokenFacts facts = facts_of(*held({3, 9, 200, 4, 200}), "tokens");
  CHECK(facts.most == 200);
  CHECK(facts.place == 2);
  CHECK(facts.least == 0);
  const TemporaryFile file("wide.bin", bytes_of(std::vector<std::int64_t>{3, 9, 200, 4, 200}));
  CHECK(facts_of(*open_tokens(file.path(), {"int64"}), "tokens").checksum == facts.checksum);
  const TemporaryFile negative("negative.bin", bytes_of(std::vector<std::int32_t>{3, 9, -2, 4}));
  const TokenFacts wrong = facts_of(*open_tokens(negative.path(), {"int32"}), "tokens");
  CHECK(wrong.least == -2);
  CHECK(wrong.place == 2);
}

}  // namespace token_file_tests
