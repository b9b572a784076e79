// Tokenizers of Hugging Face model folders, compared with transformers (tests/golden/scripts/llama.py and t5.py).
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_pattern.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using doctest::Contains;
using test::Folder;

namespace {
const std::string golden = source_root() + "/tests/golden/data/";

nlohmann::json json_in(const std::string& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

/// Checks the error for a tokenizer.json with a change.
std::string complaint(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json json = json_in(golden + "llama/nested/tokenizer.json");
  change(json);
  try {
    PublishedTokenizer(json.dump(1), "some/tokenizer.json");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

/// Saves a tokenizer and loads it again.
std::unique_ptr<Tokenizer> again(const Tokenizer& tokenizer, const Folder& folder) {
  save_tokenizer(tokenizer, folder / "tokenizer.json");
  return load_tokenizer(folder / "tokenizer.json");
}
}  // namespace

TEST_CASE("Llama's folders: tokens of tokenizer.json and of tokenizer.model, with the start token first") {
  const auto words = json_in(golden + "llama/words.json");
  for (const char* name : {"nested", "flat"}) {
    const auto tokenizer = load_tokenizer(golden + "llama/" + name);
    const Folder folder;
    const auto loaded = again(*tokenizer, folder);
    CHECK(words[name].size() >= 10);
    for (const auto& each : words[name]) {
      const std::string text = each["text"];
      CAPTURE(text);
      for (const Tokenizer* one : {tokenizer.get(), loaded.get()}) {
        CHECK(prompt_of(*one, text) == each["tokens"].get<Tokens>());
        CHECK(one->decode(each["tokens"].get<Tokens>()) == each["decoded"].get<std::string>());
      }
    }
    CHECK(loaded->begins());
    CHECK(loaded->start() == tokenizer->start());
    CHECK(loaded->end() == tokenizer->end());
    CHECK(loaded->pad() == -1);
    CHECK(loaded->size() == tokenizer->size());
  }
  const auto nested = load_tokenizer(golden + "llama/nested");
  CHECK(nested->start() == 280);
  CHECK(nested->end() == 281);
  CHECK(nested->pieces({280, 67, 281}) == std::vector<std::string>{"<|begin|>", "d", "<|end|>"});
  // Special tokens are not recognised in texts.
  CHECK(nested->decode(nested->encode("x<|end|>y")) == "x<|end|>y");
}

TEST_CASE("T5's folders: tokens of spiece.model, with the end token last; targets start with padding") {
  const auto source = load_tokenizer(golden + "t5/relu");
  const auto target = load_target_tokenizer(golden + "t5/relu");
  for (const auto& each : json_in(golden + "t5/words.json")) {
    const std::string text = each["text"];
    CAPTURE(text);
    const Tokens tokens = each["tokens"];
    CHECK(source_of(*source, text) == tokens);
    Tokens framed_tokens = tokens;
    framed_tokens.insert(framed_tokens.begin(), 0);
    CHECK(framed(*target, text) == framed_tokens);
    const bool known = std::find(tokens.begin(), tokens.end(), source->unknown()) == tokens.end();
    if (known) CHECK(source->decode(tokens) == each["decoded"].get<std::string>());
    CHECK(target->decode(each["produced"].get<Tokens>()) == each["translation"].get<std::string>());
  }
  CHECK(source->start() == -1);
  CHECK(source->end() == 1);
  CHECK(source->pad() == 0);
  CHECK(!source->begins());
  CHECK(source->size() == 64);  // the model's vocabulary size, which is larger than the number of pieces
  CHECK(source->pieces({63}) == std::vector<std::string>{"<63>"});
  const Folder folder;
  const auto loaded = again(*target, folder);
  CHECK(loaded->start() == 0);
  CHECK(loaded->size() == 64);
  CHECK(framed(*loaded, "a stitch") == framed(*target, "a stitch"));
  const auto pairs = pairs_of({{"a stitch", "", "moss"}, {"nine", "nine", ""}}, *source, *target).rows;
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0][0].tokens == source_of(*source, "a stitch"));
  CHECK(pairs[0][1].tokens == framed(*target, "nine"));
}

TEST_CASE("special tokens are read from a folder's files") {
  const Folder folder(golden + "llama/flat");
  const auto config = [&](const nlohmann::json& tokenizer, const nlohmann::json& model) {
    folder.write("tokenizer_config.json", tokenizer.dump());
    folder.write("config.json", model.dump());
    return load_tokenizer(folder.path());
  };
  CHECK(!config({{"add_bos_token", false}}, nlohmann::json::object())->begins());
  CHECK(config(nlohmann::json::object(), nlohmann::json::object())->begins());  // the default of Llama
  CHECK(config({{"eos_token", {{"content", "<s>"}}}}, {{"eos_token_id", 7}})->end() == 1);
  CHECK(config({{"eos_token", "no such piece"}}, {{"eos_token_id", {9, 7}}})->end() == 9);
  folder.write("special_tokens_map.json", R"({"eos_token": {"content": "<unk>"}})");
  CHECK(config(nlohmann::json::object(), {{"eos_token_id", 9}})->end() == 0);
  CHECK(config({{"eos_token", "<s>"}}, {{"eos_token_id", 9}})->end() == 1);
  CHECK(config(nlohmann::json::object(), {{"pad_token_id", nullptr}, {"vocab_size", 400}})->size() == 400);
  CHECK_THROWS_WITH_AS(config(nlohmann::json::object(), {{"pad_token_id", "x"}}), Contains("config.json"), FileError);
  CHECK_THROWS_WITH_AS(config({{"eos_token", 3}}, nlohmann::json::object()), Contains("tokenizer_config.json"),
                       FileError);
}

TEST_CASE("the error for a folder without a tokenizer names the files that were tried") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(
      load_tokenizer(folder.path()),
      Contains("tokenizer.json, tokenizer.model, spiece.model, vocab.json and merges.txt, or vocab.txt"), FileError);
  folder.write("tokenizer.model", "no model");
  CHECK_THROWS_WITH_AS(load_tokenizer(folder.path()), Contains("tokenizer.model: these 8 bytes are not"), FileError);
}

TEST_CASE("a tokenizer.json can have merges in two forms, ignore merges for whole words, and add tokens") {
  nlohmann::json json = json_in(golden + "llama/nested/tokenizer.json");
  const PublishedTokenizer plain(json.dump());
  const std::string text = "the stitch in  time\tof stones";
  for (auto& merge : json["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  CHECK(PublishedTokenizer(json.dump()).encode(text) == plain.encode(text));
  json["model"]["vocab"]["Ġstones"] = 282;
  CHECK(PublishedTokenizer(json.dump()).encode(text) == plain.encode(text));
  json["model"]["ignore_merges"] = true;
  const PublishedTokenizer whole(json.dump());
  CHECK(whole.encode(text).back() == 282);
  CHECK(whole.decode(whole.encode(text)) == text);
  for (const auto& [id, content] : {std::pair{283, "ti"}, {284, "tit"}, {285, "  "}})
    json["added_tokens"].push_back({{"id", id}, {"content", content}, {"special", false}});
  const PublishedTokenizer added(json.dump());
  const Tokens tokens = added.encode(text);
  CHECK(std::count(tokens.begin(), tokens.end(), 284) == 1);
  CHECK(std::count(tokens.begin(), tokens.end(), 283) == 1);
  CHECK(std::count(tokens.begin(), tokens.end(), 285) == 1);
  CHECK(added.decode(tokens) == text);
  CHECK(added.size() == 286);
}

TEST_CASE("unsupported settings in a tokenizer.json are errors with the line") {
  const auto refused = [](const std::string& part, const std::function<void(nlohmann::json&)>& change) {
    const std::string found = complaint(change);
    CAPTURE(found);
    CHECK(found.find("some/tokenizer.json, line ") == 0);
    CHECK(found.find(part) != std::string::npos);
  };
  refused("the model must be BPE, not Unigram", [](auto& json) { json["model"]["type"] = "Unigram"; });
  refused("the normalizer \"Nmt\" is not supported", [](auto& json) { json["normalizer"] = {{"type", "Nmt"}}; });
  refused("the map of characters is not base64", [](auto& json) {
    json["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "!"}};
  });
  refused("its trie says 67305985", [](auto& json) {
    json["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AQIDBA=="}};
  });
  refused("the decoder \"CTC\" is not supported", [](auto& json) { json["decoder"] = {{"type", "CTC"}}; });
  refused("the post-processor \"Other\" is not", [](auto& json) { json["post_processor"] = {{"type", "Other"}}; });
  refused("\"dropout\" is not supported", [](auto& json) { json["model"]["dropout"] = 0.5; });
  refused("\"UnicodeScripts\" is not supported",
          [](auto& json) { json["pre_tokenizer"]["pretokenizers"][0]["type"] = "UnicodeScripts"; });
  refused("the behavior \"Other\" is not supported",
          [](auto& json) { json["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Other"; });
  refused("after \"ByteLevel\" is not supported", [](auto& json) {
    json["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Digits"}});
  });
  refused("not a valid regular expression",
          [](auto& json) { json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "("; });
  refused("has no piece \"qq\"", [](auto& json) { json["model"]["merges"].push_back({"qq", "r"}); });
  refused("is repeated", [](auto& json) { json["model"]["merges"].push_back(json["model"]["merges"][0]); });
  refused("for the byte 97", [](auto& json) { json["model"]["vocab"].erase("a"); });
  refused("has the same token", [](auto& json) { json["model"]["vocab"]["a"] = 5; });
  refused("an integer from 0", [](auto& json) { json["model"]["vocab"]["a"] = -5; });
  refused("this token is not among", [](auto& json) { json["added_tokens"].erase(0); });
  CHECK(complaint([](auto&) {}).empty());
}

TEST_CASE("tokenizers of every kind: tokens, texts and pairs of Hugging Face's tokenizers") {
  const auto words = json_in(golden + "tokenizers/words.json");
  CHECK(words.size() == 7);
  for (const auto& item : words.items()) {
    const std::string kind = item.key();
    const auto& expected = item.value();
    CAPTURE(kind);
    const PublishedTokenizer tokenizer(read_text(golden + "tokenizers/" + kind + ".json"));
    for (const auto& each : expected["rows"]) {
      const std::string text = each["text"];
      CAPTURE(text);
      CHECK(tokenizer.encode(text) == each["tokens"].get<Tokens>());
      std::string decoded;
      Utf8Stream stream;
      decoded = stream.feed(tokenizer.decode(each["tokens"].get<Tokens>())) + stream.finish();
      CHECK(decoded == each["decoded"].get<std::string>());
    }
    const std::string first = expected["rows"][2]["text"], second = expected["rows"][3]["text"];
    CHECK(tokenizer.in_template({first}).tokens == expected["single"].get<Tokens>());
    CHECK(tokenizer.in_template({first, second}).tokens == expected["pair"].get<Tokens>());
    CHECK(tokenizer.in_template({first, second}).types == expected["types"].get<Tokens>());
    if (kind != "byte_level")  // whose normalizer needs UTF-8, too
      CHECK_THROWS_WITH_AS(tokenizer.encode("a\xff"), Contains("not UTF-8 at byte 1"), Error);
  }
}

TEST_CASE("BERT's folder with vocab.txt gives the tokens of its tokenizer.json") {
  const auto json = json_in(golden + "tokenizers/bert.json");
  const auto words = json_in(golden + "tokenizers/words.json")["bert"];
  std::vector<std::string> pieces(json["model"]["vocab"].size());
  for (const auto& [piece, token] : json["model"]["vocab"].items()) pieces[token.get<std::size_t>()] = piece;
  std::string lines;
  for (const std::string& piece : pieces) lines += piece + "\n";
  const Folder folder, saved;
  folder.write("vocab.txt", lines);
  const auto tokenizer = load_tokenizer(folder.path());
  const auto loaded = again(*tokenizer, saved);
  for (const auto& each : words["rows"]) {
    CHECK(tokenizer->encode(each["text"]) == each["tokens"].get<Tokens>());
    CHECK(loaded->encode(each["text"]) == each["tokens"].get<Tokens>());
  }
  CHECK(source_of(*tokenizer, words["rows"][2]["text"].get<std::string>()) == words["single"].get<Tokens>());
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(load_tokenizer(folder.path())->encode("A") != tokenizer->encode("A"));
  folder.write("vocab.txt", "[PAD]\n");
  CHECK_THROWS_WITH_AS(load_tokenizer(folder.path()), Contains("no piece \"[UNK]\""), FileError);
}

TEST_CASE("a tokenizer.json next to GPT-2's two files determines how text is split into words") {
  const Folder folder(golden + "gpt2_small");
  const Tokens plain = load_tokenizer(folder.path())->encode("12345");
  nlohmann::json json = json_in(golden + "llama/nested/tokenizer.json");
  folder.write("tokenizer.json", json.dump());
  CHECK(load_tokenizer(folder.path())->begins());
  folder.write("tokenizer.json", R"({"kind": "gpt2"})");  // a tokenizer saved by xtape
  CHECK(load_tokenizer(folder.path())->encode("12345") == plain);
}

TEST_CASE("GPT-2's words are the same from a tokenizer.json as from its two files") {
  const std::string small = golden + "gpt2_small";
  const auto files = load_tokenizer(small);
  nlohmann::json merges = nlohmann::json::array();
  for (const std::string& line : read_lines(small + "/merges.txt"))
    if (line.rfind("#version", 0) != 0) merges.push_back(line);
  const nlohmann::json json = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                               {"model", {{"vocab", json_in(small + "/vocab.json")}, {"merges", merges}}}};
  const PublishedTokenizer one(json.dump());
  for (const std::string text : {"The quick   brown fox's 1234 jumps!\n\n", "\xff\xfe b\u00e9", ""})
    CHECK(one.encode(text) == files->encode(text));
}

TEST_CASE("words by a pattern: text between matches is a word, too, and white space is that of Unicode") {
  const auto words_of = [](const std::string& text, const std::string& pattern) {
    const WordPattern compiled(pattern);
    std::vector<std::string> words;
    compiled.cut(text, [&](const Span& word) {
      if (word.begin < word.end) words.push_back(text.substr(word.begin, word.end - word.begin));
    });
    return words;
  };
  using Strings = std::vector<std::string>;
  CHECK(words_of("ab12cd", R"(\d+)") == Strings{"ab", "12", "cd"});
  CHECK(words_of("ab", "(?=b)") == Strings{"a", "b"});
  CHECK_THROWS_WITH_AS(words_of("ab", "[a&&[ab]]"), Contains("not supported"), Error);
  // Longer than what PCRE2 matches by its own limits.
  const std::string spaces(10 << 20, ' ');
  CHECK(words_of(spaces, R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)") == Strings{spaces});
  CHECK(words_of("a\u1680\u180eb", R"(\s|\S)") == Strings{"a", "\u1680", "\u180e", "b"});
  CHECK(words_of("a\u1680\u180eb", R"([^\s]+|[\s]+)") == Strings{"a", "\u1680", "\u180eb"});
}
