// Tokenizers as files of a folder in the format of the Hugging Face Hub.
#include <doctest/doctest.h>

#include <filesystem>

#include "data/tokenizers/published.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/text.hpp"

namespace saved_published {

using namespace xtape;
using test::Folder;

namespace {
const std::string golden = source_root() + "/tests/golden/data/";
const std::vector<std::string> texts = {"the rain in spain", "  Näh, THE rain", "a\u00a0rain\tin\u2003the", "",
                                        "rain <s> in"};

/// Checks that the tokenizer of the folder gives the tokens, special tokens and texts of the other.
void check_same(const Tokenizer& tokenizer, bool begins, const std::vector<std::string>& of_texts = texts) {
  const Folder folder;
  folder.write("config.json", "{\"vocab_size\": " + std::to_string(tokenizer.size()) + "}");
  save_published(tokenizer, folder.path(), begins);
  const auto read = load_tokenizer(folder.path());
  CHECK(read->size() == tokenizer.size());
  CHECK(read->begins() == begins);
  CHECK(read->start() == tokenizer.start());
  CHECK(read->end() == tokenizer.end());
  CHECK(read->pad() == tokenizer.pad());
  CHECK(read->unknown() == tokenizer.unknown());
  for (const std::string& text : of_texts) {
    CAPTURE(text);
    const Tokens tokens = tokenizer.encode(text);
    CHECK(read->encode(text) == tokens);
    CHECK(read->decode(tokens) == tokenizer.decode(tokens));
  }
}
}  // namespace

TEST_CASE("tokenizers of characters and words are the same when a folder has them") {
  const std::vector<std::string> lines = {"the rain in spain, Näh", "THE <s> \u2003 mainly\t\u00a0"};
  check_same(CharacterTokenizer(lines, CharacterTokenizer::Unknown::error, false), false);
  check_same(CharacterTokenizer(lines, CharacterTokenizer::Unknown::error, true), true);
  // A word that is written as a special token becomes this token in the folder, as in transformers.
  const std::vector<std::string> words(texts.begin(), texts.end() - 1);
  check_same(WordTokenizer(lines), true, words);
  WordOptions lower;
  lower.lower_case = true;
  check_same(WordTokenizer(lines, lower), true, words);
  // An unknown character is an error, or a token of its own.
  const CharacterTokenizer strict("ab"), open("ab", CharacterTokenizer::Unknown::token);
  check_same(open, false, {"abba", "axb"});
  const Folder folder;
  save_published(strict, folder.path(), false);
  CHECK_THROWS_AS(load_tokenizer(folder.path())->encode("axb"), Error);
}

TEST_CASE("tokenizers of pieces keep their files and their special tokens") {
  const SentencePieceTokenizer pieces({"the rain in spain stays mainly in the plain", "näh, THE rain"}, {"bpe", 40});
  check_same(pieces, true);
  check_same(pieces, false);
  const std::string gpt2 = golden + "gpt2_small/";
  check_same(Gpt2Tokenizer(gpt2 + "vocab.json", gpt2 + "merges.txt"), false, {"the rain, at 8", " at"});
  for (const char* name : {"llama/nested", "llama/flat"}) {
    CAPTURE(name);
    const auto tokenizer = load_tokenizer(golden + name);
    check_same(*tokenizer, tokenizer->begins(), {"a stitch in time", "saves <0x41> nine"});
  }
}

TEST_CASE("a folder may have two tokenizers, of which the one for targets has the start of a decoder") {
  const Folder folder;
  folder.write("config.json", "{}");
  const WordTokenizer source(std::vector<std::string>{"eins zwei"}), target(std::vector<std::string>{"one two three"});
  save_published(source, folder / source_tokenizer_folder, false);
  save_published(target, folder / target_tokenizer_folder, false);
  folder.write(std::string(target_tokenizer_folder) + "/generation_config.json",
               R"({"decoder_start_token_id": 2, "eos_token_id": 3})");
  CHECK(load_tokenizer(folder.path())->encode("zwei") == source.encode("zwei"));
  const auto read = load_target_tokenizer(folder.path());
  CHECK(read->encode("three") == target.encode("three"));
  CHECK(read->start() == 2);
  CHECK(read->ends() == Tokens{3});
}

}  // namespace saved_published
