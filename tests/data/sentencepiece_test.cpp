#include <doctest/doctest.h>

#include <filesystem>

#include "temporary_file.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {

using Strings = std::vector<std::string>;

const Strings lines = {"Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
                       "Two young, white males are outside near many bushes.",
                       "Mehrere Männer mit Schutzhelmen bedienen ein Antriebsradsystem.",
                       "Several men in hard hats are operating a giant pulley system.",
                       "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
                       "A little girl climbing into a wooden playhouse.",
                       "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
                       "A man in a blue shirt is standing on a ladder cleaning a window.",
                       "Zwei Männer stehen am Herd und bereiten Essen zu.",
                       "Two men are at the stove preparing food."};

SentencePieceTokenizer trained(const std::string& model, std::int64_t size, bool lower_case = false) {
  return SentencePieceTokenizer(lines, {model, size, lower_case});
}

}  // namespace

TEST_CASE("pieces decode to the text, and special tokens are left out") {
  for (const char* model : {"unigram", "bpe"}) {
    CAPTURE(model);
    const SentencePieceTokenizer tokenizer = trained(model, 100);
    CHECK(tokenizer.size() == 100);
    CHECK(tokenizer.pad() == 0);
    CHECK(tokenizer.unknown() == 1);
    CHECK(tokenizer.start() == 2);
    CHECK(tokenizer.end() == 3);
    CHECK(tokenizer.pieces({0, 1, 2, 3}) == Strings{"<pad>", "<unk>", "<s>", "</s>"});
    for (const std::string& line : lines) {
      const Tokens tokens = tokenizer.encode(line);
      CHECK(tokens.size() < line.size());
      CHECK(tokenizer.decode(tokens) == line);
      Tokens framed = tokens;
      framed.insert(framed.begin(), tokenizer.start());
      framed.insert(framed.end(), {tokenizer.end(), tokenizer.pad(), tokenizer.pad()});
      CHECK(tokenizer.decode(framed) == line);
      std::string joined;
      for (const std::string& piece : tokenizer.pieces(tokens)) joined += piece;
      CHECK(joined.rfind("▁" + line.substr(0, line.find(' ')) + "▁", 0) == 0);
    }
    CHECK(tokenizer.encode("").empty());
    CHECK(tokenizer.decode({}).empty());
  }
}

TEST_CASE("a character without a piece is unknown; the names of special tokens are text") {
  const SentencePieceTokenizer tokenizer = trained("bpe", 100);
  const Tokens tokens = tokenizer.encode("Männer ☃");
  CHECK(tokens.back() == tokenizer.unknown());
  CHECK(tokenizer.decode(tokens) == "Männer  \u2047 ");
  for (const std::int32_t token : tokenizer.encode("</s><pad>")) CHECK((token == 1 || token > 3));
  CHECK_THROWS_WITH_AS(tokenizer.encode("Männer \xFF"), "the text is not UTF-8 at byte 8", Error);
  CHECK_THROWS_WITH_AS(tokenizer.decode({100}), "token 100 is outside the vocabulary of 100", Error);
  CHECK_THROWS_AS(tokenizer.pieces({-1}), Error);
}

TEST_CASE("text can be lower-cased") {
  const SentencePieceTokenizer tokenizer = trained("unigram", 80, true);
  CHECK(tokenizer.decode(tokenizer.encode("Zwei MÄNNER")) == "zwei männer");
  CHECK(tokenizer.encode("Zwei MÄNNER") == tokenizer.encode("zwei männer"));
}

TEST_CASE("the same lines give the same model") {
  for (const char* model : {"unigram", "bpe"}) {
    const std::string bytes = trained(model, 90).model();
    CHECK(!bytes.empty());
    CHECK(trained(model, 90).model() == bytes);
    CHECK(trained(model, 91).model() != bytes);
    CHECK(SentencePieceTokenizer(bytes).encode(lines[0]) == trained(model, 90).encode(lines[0]));
  }
}

TEST_CASE("a vocabulary size that the text does not support is an error") {
  const std::int64_t most = trained("unigram", 5000).size();
  CHECK(most > 100);
  CHECK(most < 1000);
  std::string limit;
  try {
    trained("bpe", 5000);
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find("too few words for 5000 bpe pieces; the maximum is ") != std::string::npos);
    limit = message.substr(message.rfind(' ') + 1);
  }
  REQUIRE(!limit.empty());
  CHECK(trained("bpe", std::stoll(limit)).size() == std::stoll(limit));
  CHECK_THROWS_AS(trained("bpe", std::stoll(limit) + 1), Error);
  CHECK_THROWS_WITH_AS(trained("unigram", 20), doctest::Contains("20 pieces are too few"), Error);
  CHECK_THROWS_WITH_AS(trained("bpe", 0), doctest::Contains("pieces, not 0"), Error);
}

TEST_CASE("texts that cannot be trained on are errors") {
  CHECK_THROWS_WITH_AS(trained("char", 100), doctest::Contains("not \"char\""), Error);
  CHECK_THROWS_WITH_AS(SentencePieceTokenizer({"a", "b\xFF"}, {}),
                       "line 2 of the text: the text is not UTF-8 at byte 1", Error);
  CHECK_THROWS_WITH_AS(SentencePieceTokenizer(Strings{"", ""}, {}), doctest::Contains("there is no text"), Error);
  CHECK_THROWS_WITH_AS(SentencePieceTokenizer("no model"), "these 8 bytes are not a sentencepiece model", Error);
  CHECK_THROWS_AS(SentencePieceTokenizer(""), Error);
}

TEST_CASE("lines without text do not reach sentencepiece, which would abort the program") {
  const Strings nothing[] = {{},
                             {""},
                             {" ", "   "},
                             {"\t\t"},
                             {"\x01\x02\x7F"},
                             {std::string(10, '\0')},
                             {"\u200B\u200B"},
                             {"\u2581"},
                             {"\uFFFD"},
                             {"\uFEFF", "\u3000"}};
  for (const Strings& texts : nothing)
    for (const char* model : {"unigram", "bpe"})
      CHECK_THROWS_WITH_AS(SentencePieceTokenizer(texts, {model, 20}),
                           "there is no text to train a sentencepiece model on", Error);
  CHECK(SentencePieceTokenizer(Strings{"", " ", "a"}, {"unigram", 20}).size() > 4);
}

TEST_CASE("a NUL character in the text is left out") {
  const std::string nul(1, '\0');
  CHECK(SentencePieceTokenizer(Strings{nul, "ab" + nul + "ab abc", "abc" + nul}, {"unigram", 20}).model() ==
        SentencePieceTokenizer(Strings{"", "abab abc", "abc"}, {"unigram", 20}).model());
}

// Without the limit, such words abort the program ("unrecoverable error") or crash it.
TEST_CASE("a line of a megabyte without spaces is trained on as words of 256 characters") {
  std::string line;
  for (unsigned i = 0; line.size() < 1 << 20; ++i) line += static_cast<char>('a' + i * i % 23 % 4);
  CHECK(SentencePieceTokenizer(Strings{line}, {"bpe", 10}).size() == 10);
  const std::string word(256, 'a');
  CHECK(SentencePieceTokenizer(Strings{word + word + "b", "c"}, {"bpe", 12}).model() ==
        SentencePieceTokenizer(Strings{word, word, "b", "c"}, {"bpe", 12}).model());
}

TEST_CASE("a vocabulary size out of range is an error with the range") {
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{4}, most_pieces + 1, INT64_MAX})
    CHECK_THROWS_WITH_AS(trained("unigram", size),
                         ("a vocabulary must have 5 to 1048576 pieces, not " + std::to_string(size)).c_str(), Error);
}

TEST_CASE("lines of any length are trained on") {
  std::string line;
  while (line.size() < 10000) line += lines[0] + " ";
  CHECK(SentencePieceTokenizer(Strings{line, "ŷ"}, {"bpe", 40, false}).encode("Männer").size() < 8);
}

TEST_CASE("a sentencepiece tokenizer is saved and loaded with its model file") {
  const SentencePieceTokenizer tokenizer = trained("bpe", 100);
  const TemporaryFile file("pieces.json");
  const TemporaryFile beside("pieces.model");
  save_tokenizer(tokenizer, file.path());
  const auto loaded = load_tokenizer(file.path());
  CHECK(loaded->files("pieces")[0].bytes == tokenizer.model());
  CHECK(loaded->to_json() == tokenizer.to_json());
  CHECK(loaded->end() == 3);
  CHECK(loaded->encode(lines[2]) == tokenizer.encode(lines[2]));

  const auto refused = [&](const char* reason) {
    const std::string named = beside.path() + reason;
    CHECK_THROWS_WITH_AS(load_tokenizer(file.path()), doctest::Contains(named.c_str()), FileError);
  };
  const std::string bytes = tokenizer.model();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    beside.write(bytes.substr(0, size));
    refused(" is not the file that was saved with");
  }
  std::string flipped = bytes;
  flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 1);
  beside.write(flipped);
  refused(" is not the file that was saved with");
  beside.write(trained("bpe", 99).model());
  refused(" is not the file that was saved with");
  std::filesystem::remove(beside.path());
  refused("': No such file");
}
