// Texts of any size: streams, the place of a split, tokens made in pieces.
#include "data/texts/long_text.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/bytes/encodings.hpp"
#include "data/texts/token_files.hpp"
#include "data/tokenizers/word_counts.hpp"
#include "source_root.hpp"
#include "temporary_file.hpp"
#include "xtape/error.hpp"

using namespace xtape;

namespace long_text_tests {
namespace {
const std::string golden = source_root() + "/tests/golden/data/";

/// A text of several pieces: words of few letters with all that tokenizers treat in a special way between them.
std::string babble(std::size_t bytes) {
  static const std::vector<std::string> words = {"the",  "stitch", "in",   "time",  "of",    "stones",
                                                 "it's", "we'll",  "näh",  "moss",  "Rolls", "42",
                                                 "1234", "x_y",    "日本", "saves", "nine",  "gathers"};
  static const std::vector<std::string> spaces = {" ",  " ",   " ",     " ",   " ",      " ",   " ",
                                                  "\n", "  ",  "\n\n",  ". ",  ", ",     ".\n", "\r\n",
                                                  "\t", "   ", "!\n\n", " - ", "\u00a0", " \n"};
  std::mt19937 random(7);  // its numbers are the same everywhere
  std::string text;
  while (text.size() < bytes) text += words[random() % words.size()] + spaces[random() % spaces.size()];
  return text;
}

LongText text_of(const TemporaryFile& file) {
  LongText text;
  text.add(file.path(), {});
  return text;
}

std::string whole(const LongText& text) {
  std::string all;
  text.read([&](std::string_view piece) { all += piece; });
  return all;
}

Tokens all_of(const TokenSequence& tokens) {
  std::vector<std::int64_t> wide(static_cast<std::size_t>(tokens.size()));
  tokens.read(0, tokens.size(), wide.data());
  return {wide.begin(), wide.end()};
}

Tokens encoded(const Tokenizer& tokenizer, const LongText& text) {
  TokenWriter writer("", tokenizer.size());
  encode_text(tokenizer, text, writer);
  return all_of(*writer.finish());
}

std::string complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}
}  // namespace

TEST_CASE("a long text is the text of its files, and is divided as split_text divides it") {
  const TemporaryFile a("a.txt", "\xEF\xBB\xBFähnlich\nund\n"), b("b.txt", "ohne Ende"), c("c.txt", "日本");
  LongText text;
  for (const TemporaryFile* file : {&a, &b, &c}) text.add(file->path(), {});
  const std::string all = "ähnlich\nund\nohne Ende\n日本";
  CHECK(whole(text) == all);
  CHECK(text.checksum() == checksum_of(all.data(), all.size()));
  for (const double fraction : {0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 1.0}) {
    LongText first = text;
    const LongText rest = first.divide(fraction);
    const TextSplit split = split_text(all, fraction);
    CHECK(whole(first) == split.training);
    CHECK(whole(rest) == split.validation);
    CHECK(first.checksum() == checksum_of(split.training.data(), split.training.size()));
    CHECK(rest.checksum() == checksum_of(split.validation.data(), split.validation.size()));
  }
  CHECK(characters_of(text) == "\n Ecdehilnouä日本");
}

TEST_CASE("the division of a text of several pieces is that of split_text") {
  const std::string all = babble(700'000);
  const TemporaryFile file("babble.txt", all);
  LongText text = text_of(file);
  CHECK(text.checksum() == checksum_of(all.data(), all.size()));
  const LongText rest = text.divide(0.9);
  CHECK(whole(text) == split_text(all, 0.9).training);
  CHECK(whole(rest) == split_text(all, 0.9).validation);
  std::string joined;
  std::size_t pieces = 0;
  text_of(file).read_words([&](const std::string& piece) { joined += piece, ++pieces; });
  CHECK(joined == all);
}

TEST_CASE("the tokens of a text made in pieces are those of the whole text") {
  const std::string all = babble(5'000'000);
  const TemporaryFile file("babble.txt", all);
  const LongText text = text_of(file);
  const auto same = [&](const std::string& name, const Tokenizer& tokenizer) {
    CAPTURE(name);
    CHECK(encoded(tokenizer, text) == tokenizer.encode(all));
  };
  same("characters", CharacterTokenizer(all));
  same("words", WordTokenizer({all}));
  same("bpe", SentencePieceTokenizer({babble(100'000)}, {.model = "bpe", .vocabulary_size = 120}));
  same("gpt2", Gpt2Tokenizer(golden + "gpt2_small/vocab.json", golden + "gpt2_small/merges.txt"));
  same("llama/flat", *load_tokenizer(golden + "llama/flat"));
  same("llama/nested", *load_tokenizer(golden + "llama/nested"));
  for (const char* kind : {"bert", "byte_level", "clip", "llama2", "metaspace", "unigram", "word_level"}) {
    std::ifstream json(golden + "tokenizers/" + kind + ".json");
    same(kind, PublishedTokenizer(std::string(std::istreambuf_iterator<char>(json), {})));
  }
}

TEST_CASE("a text without spaces is one piece, unless its tokens are characters") {
  std::string all;
  std::mt19937 random(3);
  while (all.size() < 5'000'000) all += "acgt"[random() % 4];
  all += "ñ";
  const TemporaryFile file("word.txt", all);
  const CharacterTokenizer characters(all);
  CHECK(encoded(characters, text_of(file)) == characters.encode(all));
  const Gpt2Tokenizer gpt2(golden + "gpt2_small/vocab.json", golden + "gpt2_small/merges.txt");
  CHECK(encoded(gpt2, text_of(file)) == gpt2.encode(all));
}

TEST_CASE("a sentencepiece model made of the counts of words is that made of the text") {
  const std::string all = babble(300'000);
  WordCounts counts;
  std::string word;
  for (const char c : all + " ") {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space)
      word += c;
    else if (!word.empty())
      counts.add(std::exchange(word, ""));
  }
  const SentencePieceOptions options = {.model = "bpe", .vocabulary_size = 70};
  const SentencePieceTokenizer of_text({all}, options), of_counts(sentencepiece_model(counts.ranked(), options));
  REQUIRE(of_counts.size() == of_text.size());
  for (std::int32_t token = 0; token < of_text.size(); ++token)
    CHECK(of_counts.pieces({token}) == of_text.pieces({token}));
  CHECK(of_counts.encode(all.substr(0, 50'000)) == of_text.encode(all.substr(0, 50'000)));
  // The pieces of unigram models are chosen among those that words have, not sentences, so that few may differ.
  const SentencePieceTokenizer unigram(
      sentencepiece_model(counts.ranked(), {.model = "unigram", .vocabulary_size = 70}));
  CHECK(unigram.size() == 70);
  CHECK(unigram.decode(unigram.encode("the stitch in time saves nine")) == "the stitch in time saves nine");
}

TEST_CASE("errors of long texts name the file and the line") {
  const TemporaryFile a("a.txt", "one\ntwo\n"), b("b.txt", "three\nfo\xFFur\n"), c("c.txt", "three\nfour é\n");
  LongText text;
  text.add(a.path(), {});
  text.add(b.path(), {});
  const std::string wrong = b.path() + ", line 2: the text is not UTF-8 at byte 2";
  CHECK(complaint([&] { characters_of(text); }) == wrong);
  CHECK(complaint([&] { encoded(WordTokenizer({"one"}), text); }) == wrong);
  LongText strange;
  strange.add(a.path(), {});
  strange.add(c.path(), {});
  CHECK(complaint([&] {
          encoded(CharacterTokenizer("onetwhrfu \n"), strange);
        }).find(c.path() + ", line 2: character 'é'") == 0);
  CHECK(complaint([&] { text_of(c).read([](std::string_view) {}); }) == "nothing");
  const LongText before = text_of(c);
  c.write("three\nfour five\n");
  CHECK(complaint([&] { before.read([](std::string_view) {}); }) ==
        c.path() + " has changed since this program began to read it: start again");
  CHECK(text_of(c).identity() != before.identity());
}

}  // namespace long_text_tests
