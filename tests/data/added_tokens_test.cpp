// The files of a Hugging Face folder beside its pieces: added tokens, special tokens, and what ends a text. The values
// are those of transformers.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/system/durable.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using doctest::Contains;
using test::Folder;

namespace {
const std::string golden_root = source_root() + "/tests/golden/data/";

nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

/// Saves a tokenizer and loads it again.
std::unique_ptr<Tokenizer> reloaded(const Tokenizer& tokenizer, const Folder& folder) {
  save_tokenizer(tokenizer, folder / "tokenizer.json");
  return load_tokenizer(folder / "tokenizer.json");
}

/// Folders with a tokenizer of each kind, without added tokens.
std::vector<std::unique_ptr<Folder>> folders_of_each_kind() {
  std::vector<std::unique_ptr<Folder>> all;
  for (const char* name : {"gpt2_small", "t5/relu", "llama/flat", "llama/nested"})
    all.push_back(std::make_unique<Folder>(golden_root + name));
  const auto json = read_json(golden_root + "tokenizers/bert.json");
  std::map<int, std::string> pieces;
  for (const auto& [piece, token] : json["model"]["vocab"].items()) pieces[token] = piece;
  std::string lines;
  for (const auto& piece : pieces) lines += piece.second + "\n";
  all.push_back(std::make_unique<Folder>());
  all.back()->write("vocab.txt", lines);
  for (const auto& folder : all)
    if (!path_exists(*folder / "tokenizer_config.json")) folder->write("tokenizer_config.json", "{}");
  return all;
}
}  // namespace

TEST_CASE("tokens that a folder adds are read from each of its files, for each kind of tokenizer") {
  for (const auto& folder : folders_of_each_kind()) {
    const auto plain = load_tokenizer(folder->path());
    const auto next = static_cast<std::int32_t>(plain->size());
    const std::string own = read_text(*folder / "tokenizer_config.json");
    const auto write = [&](const std::string& name, const nlohmann::json& json) { folder->write(name, json.dump()); };
    const auto entry = [&](const std::string& content, bool special, nlohmann::json more) {
      more.update({{"content", content}, {"special", special}, {"normalized", false}});
      return more;
    };
    nlohmann::json config = nlohmann::json::parse(own), in_config = config;
    config["additional_special_tokens"] = {"<end>"};
    in_config["added_tokens_decoder"] = {{std::to_string(next), entry("<new>", false, {{"lstrip", true}})},
                                         {std::to_string(next + 1), entry("foo_bar", false, {{"single_word", true}})},
                                         {std::to_string(next + 2), entry("<end>", true, {})}};
    for (const bool as_config : {false, true}) {
      CAPTURE(as_config);
      CAPTURE(folder->path());
      // The older file says less than the entry of tokenizer_config.json, and counts only if there is no such entry.
      write("added_tokens.json", as_config
                                     ? nlohmann::json{{"the", next}}
                                     : nlohmann::json{{"<new>", next}, {"foo_bar", next + 1}, {"<end>", next + 2}});
      write("tokenizer_config.json", as_config ? in_config : config);
      const Folder saved;
      const auto loaded = load_tokenizer(folder->path()), second = reloaded(*loaded, saved);
      for (const Tokenizer* one : {loaded.get(), second.get()}) {
        CHECK(one->size() == next + 3);
        CHECK(one->encode("<new>") == Tokens{next});
        CHECK(one->encode("foo_bar<new>foo_bar") == Tokens{next + 1, next, next + 1});
        CHECK(one->encode("foo_bars").front() == (as_config ? plain->encode("foo_bars").front() : next + 1));
        CHECK(one->encode("the stitch") == plain->encode("the stitch"));
        CHECK(one->encode("a<end>") == plain->encode("a<end>"));  // special tokens are not found in texts
        const Tokens mixed = one->encode("the <new>");
        CHECK(mixed.size() == plain->encode(as_config ? "the" : "the ").size() + 1);
        CHECK(one->decode({next, next + 2, next + 1}).find("<new>") == 0);
        CHECK(one->decode({next, next + 2, next + 1}).find("<end>") == std::string::npos);
        CHECK(one->pieces({next + 1, next + 2}) == std::vector<std::string>{"foo_bar", "<end>"});
      }
    }
  }
}

TEST_CASE("text after an added token of a sentencepiece model has a space before it if the folder says so") {
  const Folder folder(golden_root + "llama/flat");
  const auto plain = load_tokenizer(folder.path());
  const auto next = static_cast<std::int32_t>(plain->size());
  folder.write("added_tokens.json", nlohmann::json{{"<new>", next}}.dump());
  for (const bool legacy : {false, true}) {
    folder.write("tokenizer_config.json", nlohmann::json{{"legacy", legacy}}.dump());
    const auto tokenizer = load_tokenizer(folder.path());
    Tokens expected = plain->encode("the"), after = plain->encode(legacy ? "the" : "athe");
    expected.push_back(next);
    if (!legacy) after = tokenizer->encode("<new>the"), after.erase(after.begin());
    expected.insert(expected.end(), after.begin(), after.end());
    CHECK(tokenizer->encode("the<new>the") == expected);
    CHECK((after == plain->encode("the")) == legacy);
    CHECK(tokenizer->decode(tokenizer->encode("the<new>the stitch<new> the")) ==
          (legacy ? "the<new> the stitch<new>  the" : "the<new>the stitch<new> the"));
  }
}

TEST_CASE("added tokens that contradict the vocabulary or each other are errors that name their file") {
  for (const auto& folder : folders_of_each_kind()) {
    CAPTURE(folder->path());
    const auto plain = load_tokenizer(folder->path());
    const auto next = static_cast<std::int32_t>(plain->size());
    const Tokens known = plain->encode("a");
    const std::string piece = plain->pieces(known).back();
    const auto refused = [&](const std::string& file, const nlohmann::json& json, const std::string& part) {
      const std::string old = path_exists(*folder / file) ? read_text(*folder / file) : "{}";
      folder->write(file, json.dump());
      CHECK_THROWS_WITH_AS(load_tokenizer(folder->path()), Contains((file).c_str()), FileError);
      CHECK_THROWS_WITH_AS(load_tokenizer(folder->path()), Contains(part.c_str()), FileError);
      folder->write(file, old);
    };
    refused("added_tokens.json", {{piece, next}},
            "but the vocabulary has it as number " + std::to_string(known.back()));
    refused("added_tokens.json", {{"<x>", next}, {"<y>", next}}, "but the vocabulary has this number for \"<x>\"");
    refused("added_tokens.json", {{"<x>", -1}}, "an integer from 0");
    refused("added_tokens.json", nlohmann::json::array(), "an object belongs here");
    refused("tokenizer_config.json", {{"added_tokens_decoder", {{"x", {{"content", "<x>"}}}}}},
            "the number of a token");
    refused("tokenizer_config.json", {{"added_tokens_decoder", {{"9000", {{"special", true}}}}}},
            "\"content\" is missing");
    refused("tokenizer_config.json", {{"added_tokens_decoder", {{"9000", {{"content", ""}}}}}}, "must not be empty");
    folder->write("added_tokens.json", "");
    CHECK_THROWS_WITH_AS(load_tokenizer(folder->path()), Contains("added_tokens.json: the text is empty"), FileError);
  }
  const auto json = [](const nlohmann::json& added) -> std::string {
    nlohmann::json all = read_json(golden_root + "llama/nested/tokenizer.json");
    all["added_tokens"].push_back(added);
    try {
      PublishedTokenizer(all.dump());
    } catch (const FileError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(json({{"id", 9}, {"content", "<x>"}}).find("the number 9, but the vocabulary has this number for") !=
        std::string::npos);
  CHECK(json({{"id", 900}, {"content", "a"}}).find("the number 900, but the vocabulary has it as") !=
        std::string::npos);
}

TEST_CASE("the tokens that end a generated text: of generation_config.json, of config.json, or the end token") {
  const Folder folder(golden_root + "llama/flat");
  folder.write("tokenizer_config.json", "{}");
  const auto ends = [&](const nlohmann::json& model, const nlohmann::json& generation) {
    folder.write("config.json", model.dump());
    folder.write("generation_config.json", generation.dump());
    const Folder saved;
    const auto tokenizer = load_tokenizer(folder.path());
    CHECK(reloaded(*tokenizer, saved)->ends() == tokenizer->ends());
    return tokenizer->ends();
  };
  const nlohmann::json none = nlohmann::json::object();
  CHECK(ends(none, none) == Tokens{2});  // that of the model's file
  CHECK(ends({{"eos_token_id", 7}}, none) == Tokens{7});
  CHECK(ends({{"eos_token_id", {9, 7}}}, none) == Tokens{9, 7});
  CHECK(ends({{"eos_token_id", {9, 7}}}, {{"eos_token_id", {5, 2, 300}}}) == Tokens{5, 2, 300});
  CHECK(ends({{"eos_token_id", 7}}, {{"eos_token_id", 5}}) == Tokens{5});
  CHECK(ends({{"eos_token_id", 7}}, {{"eos_token_id", nullptr}}) == Tokens{7});
  CHECK_THROWS_WITH_AS(ends(none, {{"eos_token_id", "x"}}), Contains("generation_config.json"), FileError);
  CHECK(WordTokenizer({"a"}).ends() == Tokens{3});
  CHECK(CharacterTokenizer("a").ends().empty());
}

TEST_CASE("GPT-2's folder: special tokens, the size of the model, and the first space are those of its files") {
  const Folder folder(golden_root + "gpt2_small");
  const auto config = [&](const nlohmann::json& tokenizer) {
    folder.write("tokenizer_config.json", tokenizer.dump());
    folder.write("config.json", R"({"vocab_size": 700, "bos_token_id": 3, "pad_token_id": 4})");
    const Folder saved;
    return reloaded(*load_tokenizer(folder.path()), saved);
  };
  const auto plain = config(nlohmann::json::object());
  CHECK(plain->size() == 700);
  CHECK(plain->decode({65, 699}) == plain->decode({65}));  // a number without a piece has no text
  CHECK(plain->pieces({699}) == std::vector<std::string>{"<699>"});
  CHECK(plain->start() == 3);
  CHECK(plain->pad() == 4);
  CHECK(!plain->begins());
  CHECK(config({{"add_bos_token", true}})->begins());
  CHECK(config({{"add_prefix_space", true}})->encode("the stone") == plain->encode(" the stone"));
  CHECK_THROWS_WITH_AS(config({{"tokenizer_class", "Qwen2Tokenizer"}}), Contains("not Qwen2Tokenizer"), FileError);
}

TEST_CASE("Metaspace adds its first space only before the first character of the text") {
  // The values are those of Hugging Face's tokenizers.
  nlohmann::json json = {{"pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "first"}}},
                         {"added_tokens", {{{"id", 90}, {"content", "<new>"}, {"normalized", false}}}}};
  json["model"]["merges"] = nlohmann::json::array();
  for (const std::string piece : {"▁", "a", "b", "c", "x", "y", "1", ",", "\u0301", "e"})
    json["model"]["vocab"][piece] = json["model"]["vocab"].size();
  const auto words = [&](const nlohmann::json& normalizer, const std::string& text) {
    std::string all;
    json["normalizer"] = normalizer;
    const PublishedTokenizer tokenizer(json.dump());
    for (const std::string& piece : tokenizer.pieces(tokenizer.encode(text))) all += piece;
    return all;
  };
  const auto replace = [](const std::string& from, const std::string& to) {
    return nlohmann::json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  const nlohmann::json strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}},
                       accents = {{"type", "StripAccents"}}, bert = {{"type", "BertNormalizer"}};
  for (const bool split : {false, true}) {
    if (split)
      json["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", {{{"type", "Punctuation"}}, json["pre_tokenizer"]}}};
    CHECK(words(nullptr, "abc") == "▁abc");
    CHECK(words(nullptr, " abc") == "▁abc");
    CHECK(words(nullptr, "<new>abc") == "<new>abc");
    CHECK(words(strip, "abc") == "▁abc");
    CHECK(words(strip, " abc") == "abc");
    CHECK(words(strip, "  abc x") == "abc▁x");
    CHECK(words(strip, " abc <new> x") == "abc<new>x");
    CHECK(words(strip, "abc ") == "▁abc");
    CHECK(words(replace("b", ""), "bac") == "ac");
    CHECK(words(replace("b", ""), "abc") == "▁ac");
    CHECK(words(replace("xx", "y"), "xxac") == "yac");
    CHECK(words(replace("x", "yy"), "xac") == "▁yyac");
    CHECK(words(accents, "\u0301ac") == "ac");
    CHECK(words(accents, "ac\u0301") == "▁ac");
    CHECK(words(bert,
                "\x01"
                "ac") == "ac");
    CHECK(words(bert, "\u00e9ac") == "▁eac");
    CHECK(words({{"type", "Sequence"}, {"normalizers", {strip, {{"type", "Prepend"}, {"prepend", "x"}}}}}, " ac") ==
          "xac");
  }
}

TEST_CASE("a tokenizer.json next to a sentencepiece model is read, with the tokens that it adds") {
  const Folder folder(golden_root + "llama/flat");
  nlohmann::json json = read_json(golden_root + "llama/nested/tokenizer.json");
  json["added_tokens"].push_back({{"id", 300}, {"content", "<new>"}});
  folder.write("tokenizer.json", json.dump());
  CHECK(load_tokenizer(folder.path())->encode("<new>") == Tokens{300});
  // The settings of a token are those of tokenizer_config.json, or else of tokenizer.json.
  json["added_tokens"].back()["single_word"] = true;
  folder.write("tokenizer.json", json.dump());
  folder.write("added_tokens.json", R"({"<new>": 300, "<more>": 301})");
  CHECK(load_tokenizer(folder.path())->encode("a<new>").size() > 2);
  CHECK(load_tokenizer(folder.path())->encode("<more>") == Tokens{301});
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"300": {"content": "<new>"}}})");
  CHECK(load_tokenizer(folder.path())->encode("a<new>").back() == 300);
  CHECK(load_tokenizer(folder.path())->encode("<more>").size() > 1);
  folder.write("tokenizer_config.json", "{}");
  folder.write("added_tokens.json", R"({"<new>": 301})");
  CHECK_THROWS_WITH_AS(load_tokenizer(folder.path()), Contains("added_tokens.json: the added token \"<new>\""),
                       FileError);
  folder.write("added_tokens.json", "{}");
  CHECK(load_tokenizer(folder.path())->encode("stone") == PublishedTokenizer(json.dump()).encode("stone"));
  folder.write("tokenizer.json", "");
  CHECK_THROWS_WITH_AS(load_tokenizer(folder.path()), Contains("tokenizer.json: the text is empty"), FileError);
}
