#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_pattern.hpp"
#include "processor_time.hpp"
#include "source_root.hpp"
#include "temporary_file.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {

using Strings = std::vector<std::string>;
using Json = nlohmann::ordered_json;

const std::string folder = source_root() + "/tests/golden/data/gpt2_small";

Gpt2Tokenizer small(const Gpt2Options& options = {}) {
  return Gpt2Tokenizer(folder + "/vocab.json", folder + "/merges.txt", options);
}

Strings words_of(const std::string& text) {
  Strings words;
  WordPattern::gpt2().cut(text,
                          [&](const Span& word) { words.push_back(text.substr(word.begin, word.end - word.begin)); });
  return words;
}

/// A vocabulary of the symbols of all bytes, followed by `more`.
Json vocabulary_of_bytes(const Strings& more = {}) {
  Json json = Json::object();
  for (int byte = 0; byte < 256; ++byte) json[symbol_of(static_cast<std::uint8_t>(byte))] = byte;
  for (const std::string& piece : more) json[piece] = json.size();
  return json;
}

Gpt2Tokenizer tokenizer_of(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options = {}) {
  const TemporaryFile first("vocab.json", vocabulary);
  const TemporaryFile second("merges.txt", merges);
  return Gpt2Tokenizer(first.path(), second.path(), options);
}

/// Reproducible random bytes, valid UTF-8 and not.
std::string noise(std::size_t count) {
  std::string bytes;
  std::uint32_t state = 12345;
  while (bytes.size() < count) {
    state = state * 1664525U + 1013904223U;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

}  // namespace

TEST_CASE("GPT-2's words: contractions, and letters, numbers and punctuation with a space before them") {
  CHECK(words_of("I'll say  12 words, won't I?\n") ==
        Strings{"I", "'ll", " say", " ", " 12", " words", ",", " won", "'t", " I", "?", "\n"});
  CHECK(words_of("a1_é２ ½!") == Strings{"a", "1", "_", "é", "２", " ½", "!"});
  CHECK(words_of("\u180E\u3000\u00A0x\x1C") == Strings{"\u180E", "\u3000", "\u00A0", "x", "\x1C"});
  CHECK(words_of("").empty());
}

TEST_CASE("GPT-2's words: bytes that are not UTF-8 are punctuation") {
  CHECK(words_of("ab\xFF\xC3(c \xE2\x82 d\xC3\xA9") == Strings{"ab", "\xFF\xC3(", "c", " \xE2\x82", " d\xC3\xA9"});
  CHECK(words_of("\xFF's") == Strings{"\xFF'", "s"});
  CHECK(words_of(" \x80") == Strings{" \x80"});
}

TEST_CASE("the symbols of bytes are printable characters, and convert back to the bytes") {
  CHECK(symbol_of('A') == "A");
  CHECK(symbol_of(' ') == "Ġ");
  CHECK(symbol_of('\n') == "Ċ");
  CHECK(symbol_of(0) == "Ā");
  CHECK(symbol_of(0xAD) == "Ń");
  CHECK(symbol_of(0xFF) == "ÿ");
  for (int byte = 0; byte < 256; ++byte)
    CHECK(bytes_of_symbols(symbol_of(static_cast<std::uint8_t>(byte))) == std::string(1, static_cast<char>(byte)));
  CHECK(bytes_of_symbols("a piece with spaces") == "a piece with spaces");
}

TEST_CASE("any bytes can be encoded, and decode to the same bytes") {
  const Gpt2Tokenizer tokenizer = small();
  for (const std::string& text :
       {noise(100000), std::string("\xF0\x9F\x98"), std::string(3, '\0'), std::string("\xC3")})
    CHECK((tokenizer.decode(tokenizer.encode(text)) == text));
  std::string mixed = "Zwei junge ";
  for (int i = 0; i < 2000; ++i) mixed += i % 3 == 0 ? noise(static_cast<std::size_t>(i % 7)) : " the other então ";
  CHECK((tokenizer.decode(tokenizer.encode(mixed)) == mixed));
  CHECK(tokenizer.encode("\xFF").size() == 1);
}

TEST_CASE("the merge of the lowest rank applies first, and the leftmost of equals") {
  const std::string merges = "#version: 0.2\nb c\na b\na a\naa aa\n";
  const Gpt2Tokenizer tokenizer = tokenizer_of(vocabulary_of_bytes({"bc", "ab", "aa", "aaaa"}).dump(), merges);
  const auto pieces = [&](const std::string& text) { return tokenizer.pieces(tokenizer.encode(text)); };
  CHECK(pieces("abc") == Strings{"a", "bc"});
  CHECK(pieces("abab") == Strings{"ab", "ab"});
  CHECK(pieces("aaa") == Strings{"aa", "a"});
  CHECK(pieces("aaaaaaa") == Strings{"aaaa", "aa", "a"});
  CHECK(pieces("aaab") == Strings{"aa", "ab"});
  CHECK(pieces("a b c") == Strings{"a", "Ġ", "b", "Ġ", "c"});
}

TEST_CASE("a word of a million letters, or as many spaces, is encoded in almost linear time") {
  const Gpt2Tokenizer tokenizer = small();
  std::string word;
  while (word.size() < 1000000) word += "thereinwhichwithoutthesequickjumps";
  for (const std::string& text : {word, std::string(1000000, ' ') + "x", std::string(1000000, 'h')}) {
    const double begin = processor_seconds();
    const Tokens tokens = tokenizer.encode(text);
    const double seconds = processor_seconds() - begin;
    CHECK((tokenizer.decode(tokens) == text));
    CHECK(seconds < 20);  // a quadratic algorithm takes hours
  }
}

TEST_CASE("<|endoftext|> in a text is one token if requested") {
  const Gpt2Tokenizer plain = small();
  const Gpt2Tokenizer reading = small({true});
  const std::string text = "the<|endoftext|> dog<|endoftext|><|endoftext|>";
  CHECK(plain.end() == 0);
  CHECK(plain.pad() == -1);
  CHECK(plain.start() == -1);
  CHECK(plain.unknown() == -1);
  CHECK(plain.decode(plain.encode(text)) == text);
  const Tokens tokens = reading.encode(text);
  CHECK(std::count(tokens.begin(), tokens.end(), reading.end()) == 3);
  CHECK(reading.decode(tokens) == "the dog");
  CHECK(reading.pieces({tokens[1], tokens.back()}).back() == "<|endoftext|>");
  CHECK_THROWS_WITH_AS(plain.decode({617}), "token 617 is outside the vocabulary of 617", Error);
  CHECK_THROWS_AS(plain.pieces({-1}), Error);

  const Gpt2Tokenizer endless = tokenizer_of(vocabulary_of_bytes().dump(), "");
  CHECK(endless.end() == -1);
  CHECK(endless.encode("<|endoftext|>").size() == 13);
  CHECK_THROWS_WITH_AS(tokenizer_of(vocabulary_of_bytes().dump(), "", {true}),
                       doctest::Contains("there is no piece \"<|endoftext|>\""), FileError);
}

TEST_CASE("several threads can encode at the same time") {
  const Gpt2Tokenizer tokenizer = small();
  const std::string text = "The quick brown fox, and the other dogs: " + noise(20000);
  const Tokens expected = small().encode(text);
  std::vector<Tokens> made(4);
  std::vector<std::thread> threads;
  for (Tokens& tokens : made) threads.emplace_back([&] { tokens = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Tokens& tokens : made) CHECK((tokens == expected));
}

TEST_CASE("errors in the files name the file and the line") {
  const auto vocabulary_is_wrong = [](const std::string& vocabulary, const std::string& message) {
    const auto says = [](const std::string& part) { return doctest::Contains(part.c_str()); };
    CHECK_THROWS_WITH_AS(tokenizer_of(vocabulary, ""), says("_vocab.json"), FileError);
    CHECK_THROWS_WITH_AS(tokenizer_of(vocabulary, ""), says(message), FileError);
  };
  vocabulary_is_wrong("{\"a\": 0,", ", line 1, column 9: a key in \"\" belongs here");
  vocabulary_is_wrong("[1, 2]", ", line 1: a vocabulary must be an object");
  vocabulary_is_wrong("{}", "a vocabulary must be an object");
  vocabulary_is_wrong(R"({"a": 0, "b": 2})",
                      "the token of \"b\" is 2; the tokens of 2 pieces must be the numbers 0 to 1");
  vocabulary_is_wrong(R"({"a": 0, "b": -1})", "the token of \"b\" is -1");
  vocabulary_is_wrong(R"({"a": 0, "b": "1"})", "the token of \"b\" is \"1\"");
  vocabulary_is_wrong(R"({"a": 0, "b": 0})", "the token of \"b\" is 0, but \"a\" has the same token");
  vocabulary_is_wrong(R"({"a": 0, "a": 1})", ", line 1, column 10: the key \"a\" appears twice");
  Json lacking = vocabulary_of_bytes();
  lacking.erase("ÿ");
  vocabulary_is_wrong(lacking.dump(), "there is no piece \"ÿ\" for the byte 255");

  const auto merges_are_wrong = [](const std::string& merges, const std::string& message) {
    const std::string whole = "_merges.txt: " + message;
    CHECK_THROWS_WITH_AS(tokenizer_of(vocabulary_of_bytes({"ab", "bc"}).dump(), merges),
                         doctest::Contains(whole.c_str()), FileError);
  };
  merges_are_wrong("#version: 0.2\na b\na c\n", "line 3: the vocabulary has no piece \"ac\"");
  merges_are_wrong("a b\nb cd\n", "line 2: the vocabulary has no piece \"cd\"");
  merges_are_wrong("a b\r\nb c\r\na b\r\n", "line 3: the merge \"a b\" is repeated");
  for (const char* line : {"ab", "a b c", " a", "a ", "a  b", ""})
    merges_are_wrong("a b\n" + std::string(line) + "\nb c\n",
                     "line 2: a merge must be two pieces separated by a space");

  CHECK_THROWS_WITH_AS(Gpt2Tokenizer(folder + "/none.json", folder + "/merges.txt"),
                       doctest::Contains("none.json: No such"), FileError);
  CHECK_THROWS_WITH_AS(Gpt2Tokenizer(folder + "/vocab.json", folder + "/none.txt"),
                       doctest::Contains("none.txt: No such"), FileError);
}

TEST_CASE("GPT-2's tokenizer is saved and loaded with its two files, and loaded from a folder of them alone") {
  const std::filesystem::path directory = TemporaryFile("gpt2").path();
  std::filesystem::create_directory(directory);
  const std::string path = (directory / "tokenizer.json").string();
  const Gpt2Tokenizer tokenizer = small({true});
  save_tokenizer(tokenizer, path);
  CHECK(read_text((directory / "vocab.json").string()) == read_text(folder + "/vocab.json"));
  CHECK(read_text((directory / "merges.txt").string()) == read_text(folder + "/merges.txt"));
  const std::string text = "the lazy dog<|endoftext|>";
  const auto loaded = load_tokenizer(path);
  CHECK(loaded->to_json() == tokenizer.to_json());
  CHECK(loaded->encode(text) == tokenizer.encode(text));
  CHECK(load_tokenizer(directory.string())->encode(text) == small().encode(text));

  // The file names are the same for all tokenizers: saving must not overwrite the files of another one.
  const Gpt2Tokenizer other = tokenizer_of(vocabulary_of_bytes().dump(), "#version: 0.2\n");
  CHECK_THROWS_WITH_AS(save_tokenizer(other, (directory / "other.json").string()),
                       doctest::Contains("vocab.json belongs to another tokenizer"), FileError);
  CHECK(!std::filesystem::exists(directory / "other.json"));
  CHECK(load_tokenizer(path)->encode(text) == tokenizer.encode(text));

  const std::string merges = (directory / "merges.txt").string();
  std::filesystem::resize_file(merges, read_text(merges).rfind('\n', read_text(merges).size() - 2) + 1);
  CHECK_THROWS_WITH_AS(load_tokenizer(path), doctest::Contains("merges.txt is not the file that was saved with"),
                       FileError);
  std::filesystem::remove(merges);
  CHECK_THROWS_WITH_AS(load_tokenizer(path), doctest::Contains("merges.txt': No such file"), FileError);
  CHECK_THROWS_WITH_AS(load_tokenizer(directory.string()), doctest::Contains("merges.txt: No such file"), FileError);
  std::filesystem::remove_all(directory);
}
