// The bytes of GGUF files: metadata of all types, and damage of every kind.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>

#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/gguf.hpp"

using namespace xtape;

namespace {
/// Writes the bytes of a file.
struct Bytes {
  std::string text;
  template <class T>
  Bytes& add(T number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Bytes& add(const char* words) {
    add(std::uint64_t(std::strlen(words)));
    text += words;
    return *this;
  }
  Bytes& header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    text += "GGUF";
    return add(version).add(tensors).add(keys);
  }
  Bytes& key(const char* name, std::uint32_t type) { return add(name).add(type); }
  Bytes& tensor(const char* name, std::initializer_list<std::uint64_t> sizes, std::uint32_t type,
                std::uint64_t offset) {
    add(name).add(std::uint32_t(sizes.size()));
    for (const std::uint64_t size : sizes) add(size);
    return add(type).add(offset);
  }
  Bytes& align(std::size_t to = 32) {
    text.resize((text.size() + to - 1) / to * to);
    return *this;
  }
  Bytes& zeros(std::size_t count) {
    text.resize(text.size() + count);
    return *this;
  }
};

std::string error_of_bytes(const std::string& bytes) {
  const test::Folder folder;
  const std::string path = folder.write("x.gguf", bytes);
  return test::error_of([&] {
    const GgufFile file(path);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) file.read(i);
  });
}
std::string error_of_bytes(const Bytes& bytes) {
  return error_of_bytes(bytes.text);
}

void check_error(const Bytes& bytes, const std::string& part) {
  const std::string error = error_of_bytes(bytes);
  CAPTURE(error);
  CAPTURE(part);
  CHECK(error.find(part) != std::string::npos);
  CHECK(error.find("x.gguf") != std::string::npos);
}

/// A file with a key of each type, and three tensors.
Bytes whole_file(std::uint32_t version) {
  Bytes file;
  file.header(3, 15, version);
  file.key("u8", 0).add(std::uint8_t(200)).key("i8", 1).add(std::int8_t(-100)).key("u16", 2).add(std::uint16_t(60000));
  file.key("i16", 3).add(std::int16_t(-30000)).key("u32", 4).add(4000000000U).key("i32", 5).add(-2000000000);
  file.key("f32", 6).add(1e-6F).key("flag", 7).add(std::uint8_t(1)).key("text", 8).add("a \"text\"");
  file.key("u64", 10).add(std::uint64_t(1) << 63).key("i64", 11).add(std::int64_t(-5)).key("f64", 12).add(0.1);
  file.key("texts", 9).add(std::uint32_t(8)).add(std::uint64_t(2)).add("x").add("");
  file.key("nested", 9).add(std::uint32_t(9)).add(std::uint64_t(2));
  file.add(std::uint32_t(4)).add(std::uint64_t(2)).add(1U).add(2U).add(std::uint32_t(7)).add(std::uint64_t(0));
  file.key("general.alignment", 4).add(64U);
  file.tensor("floats", {2, 3}, 0, 64).tensor("halves", {3}, 1, 0).tensor("blocks", {32, 1}, 8, 128).align(64);
  file.add(std::uint16_t(0x3C00)).add(std::uint16_t(0xC000)).add(std::uint16_t(1)).align(64);
  for (int i = 0; i < 6; ++i) file.add(static_cast<float>(i));
  file.align(64).add(std::uint16_t(0x3800));
  for (int i = 0; i < 32; ++i) file.add(static_cast<std::int8_t>(i - 16));
  return file;
}
}  // namespace

TEST_CASE("all types of metadata and tensors are read, from versions 2 and 3") {
  const test::Folder folder;
  for (const std::uint32_t version : {2U, 3U}) {
    const GgufFile file(folder.write("x.gguf", whole_file(version).text));
    CHECK(file.version() == version);
    const std::pair<const char*, const char*> wanted[] = {{"u8", "200"},
                                                          {"i8", "-100"},
                                                          {"u16", "60000"},
                                                          {"i16", "-30000"},
                                                          {"u32", "4000000000"},
                                                          {"i32", "-2000000000"},
                                                          {"f32", "1e-06"},
                                                          {"flag", "true"},
                                                          {"text", "\"a \\\"text\\\"\""},
                                                          {"u64", "9223372036854775808"},
                                                          {"i64", "-5"},
                                                          {"f64", "0.1"},
                                                          {"texts", "[\"x\",\"\"]"},
                                                          {"nested", "[[1,2],[]]"}};
    for (const auto& [key, text] : wanted) CHECK(file.metadata(key) == text);
    CHECK(file.keys().size() == 15);
    CHECK(test::error_of([&] { file.metadata("u9"); }).find("did you mean 'u8'") != std::string::npos);
    REQUIRE(file.tensors().size() == 3);
    CHECK(file.tensors()[0].shape == Shape{3, 2});
    CHECK(file.tensors()[2].format == "Q8_0");
    CHECK(file.read(0).as<float>()[5] == 5);
    CHECK(file.read(1).as<float>()[1] == -2);
    CHECK(file.read(2).as<float>()[0] == -8);
    CHECK(file.bytes(2).size() == 34);
    CHECK(test::error_of([&] { file.read(3); }).find("it has 3") != std::string::npos);
  }
}

TEST_CASE("a file that ends early is an error, wherever it ends") {
  const std::string whole = whole_file(3).text;
  CHECK(error_of_bytes(whole).empty());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string error = error_of_bytes(whole.substr(0, length));
    CAPTURE(length);
    CHECK(error.find("x.gguf") != std::string::npos);
  }
}

TEST_CASE("a file with one damaged byte is read, or is an error") {
  const std::string whole = whole_file(3).text;
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const unsigned char flipped : {0x01, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flipped);
      const std::string error = error_of_bytes(damaged);  // any other exception, or a fault, fails the test
      CHECK((error.empty() || error.find("x.gguf") != std::string::npos));
    }
}

TEST_CASE("absurd counts and sizes are errors before anything is allocated") {
  const std::uint64_t huge = std::uint64_t(1) << 62;
  check_error(Bytes().header(0, huge), "do not fit into the 0 bytes that are left");
  check_error(Bytes().header(huge, 0), "the descriptions of tensors");
  check_error(Bytes().header(0, 1).add(huge).zeros(64), "a key of 4611686018427387904 bytes");
  check_error(Bytes().header(0, 1).key("k", 8).add(huge).zeros(9), "key 'k'");
  check_error(Bytes().header(0, 1).key("k", 9).add(4U).add(huge).zeros(9), "the elements of an array");
  check_error(Bytes().header(1, 0).tensor("t", {huge, huge}, 0, 0).zeros(99), "their product has less than 64 bits");
  check_error(Bytes().header(1, 0).tensor("t", {huge}, 0, 0).zeros(99),
              "its blocks, 4611686018427387904 of at least 4");
  check_error(Bytes().header(1, 0).tensor("t", {0}, 0, 0).zeros(99), "a size is 0");
  check_error(Bytes().header(1, 0).tensor("t", {1, 1, 1, 1, 1}, 0, 0).zeros(99), "it has 5 axes");
  Bytes deep;
  deep.header(0, 1).key("k", 9);
  for (int i = 0; i < 1000; ++i) deep.add(9U).add(std::uint64_t(1));
  check_error(deep.zeros(99), "arrays are nested more than 8 deep");
}

TEST_CASE("wrong types, places and names are errors that say what would be right") {
  check_error(Bytes{"GGML"}, "begins with the letters GGUF");
  check_error(Bytes().header(0, 0, 1), "the version is 1; xtape reads versions 2 and 3");
  check_error(Bytes().header(0, 0, 0x03000000), "big-endian");
  check_error(Bytes().header(0, 1).key("k", 13).zeros(9), "the type of the value is 13; there are types 0 to 12");
  check_error(Bytes().header(0, 1).key("k", 7).add(std::uint8_t(2)), "a flag is 0 or 1, not 2");
  check_error(Bytes().header(0, 2).key("k", 0).zeros(1).key("k", 0).zeros(1), "the key is there twice");
  check_error(Bytes().header(1, 0).tensor("t", {32}, 20, 0).zeros(99), "tensor 't', byte 49: its format is IQ4_NL");
  check_error(Bytes().header(1, 0).tensor("t", {32}, 77, 0).zeros(99), "unknown: number 77");
  check_error(Bytes().header(1, 0).tensor("t", {33}, 8, 0).zeros(99), "no multiple of the 32 of a block of Q8_0");
  check_error(Bytes().header(1, 0).tensor("t", {4}, 0, 16).align().zeros(99), "no multiple of the alignment 32");
  check_error(Bytes().header(1, 0).tensor("t", {4}, 0, 1 << 20).align().zeros(99), "are not within the 99 bytes");
  check_error(Bytes().header(2, 0).tensor("t", {9}, 0, 0).tensor("u", {4}, 0, 32).align().zeros(99),
              "tensor 'u', byte 90: it begins at offset 32, inside tensor 't', which ends at 36");
  check_error(Bytes().header(2, 0).tensor("t", {4}, 0, 0).tensor("t", {4}, 0, 32).align().zeros(99),
              "two tensors have this name");
  check_error(Bytes().header(0, 1).key("general.alignment", 4).add(48U), "must be a power of two, not 48");
  check_error(Bytes().header(0, 1).key("split.count", 2).add(std::uint16_t(3)),
              "its name must end in '-00001-of-3.gguf'");
}

TEST_CASE("what is no plain file is an error at once: folders, pipes without a writer and devices") {
  const test::Folder folder;
  std::filesystem::create_directory(folder / "folder.gguf");
  REQUIRE(mkfifo((folder / "pipe.gguf").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "device.gguf");
  std::filesystem::create_symlink(folder / "itself.gguf", folder / "itself.gguf");
  for (const std::string name : {"folder.gguf", "pipe.gguf", "device.gguf"})
    CHECK(test::error_of([&] { GgufFile(folder / name); }) ==
          "cannot read " + (folder / name) + ": it is not a plain file");
  for (const std::string name : {"itself.gguf", "none.gguf"})
    CHECK(test::error_of([&] { GgufFile(folder / name); }).starts_with("cannot read " + (folder / name) + ": "));
}

TEST_CASE("a scale that is not finite is an error that names the block") {
  Bytes file;
  file.header(1, 0).tensor("t", {64}, 8, 0).align().zeros(34).add(std::uint16_t(0x7E00)).zeros(32);
  check_error(file, "tensor 't' is damaged: block 1 of Q8_0 has a scale that is not a finite number");
}

TEST_CASE("the parts of a split model are checked against their names") {
  const test::Folder folder;
  const std::string from = source_root() + "/tests/golden/data/gguf/split-0000";
  const auto copy = [&](int number, int as) {
    std::filesystem::copy_file(from + std::to_string(number) + "-of-00003.gguf",
                               folder / ("m-0000" + std::to_string(as) + "-of-00003.gguf"),
                               std::filesystem::copy_options::overwrite_existing);
  };
  const auto error = [&](int number) {
    return test::error_of([&] { GgufFile(folder / ("m-0000" + std::to_string(number) + "-of-00003.gguf")); });
  };
  copy(1, 1);
  copy(2, 2);
  CHECK(error(1).find("m-00003-of-00003.gguf") != std::string::npos);
  copy(2, 3);
  CHECK(error(1).find("must be 2 and 3, as its name says") != std::string::npos);
  copy(3, 3);
  CHECK(error(1).empty());
  CHECK(error(2).find("open the first part") != std::string::npos);
}
