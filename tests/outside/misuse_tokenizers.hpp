/// What the tables of texts share, and the rows of tokenizers.
#pragma once

#include <fstream>

#include "folders.hpp"
#include "misuse.hpp"

namespace misuse::texts {

using namespace xtape;

/// A vocabulary of all bytes, as GPT-2 writes them, and no merges.
inline const std::string byte_pairs = [] {
  std::string vocabulary;
  int token = 0, above = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    char escaped[16];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(shown ? byte : above++));
    vocabulary += std::string(token == 0 ? "" : ", ") + "\"" + escaped + "\": " + std::to_string(token);
    ++token;
  }
  return R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"type": "BPE", "vocab": {)" +
         vocabulary + R"(}, "merges": []}, "added_tokens": []})";
}();

inline const std::vector<std::string> lines = {"the cat sat", "the dog sat on the mat"};

struct World {
  test::Folder folder;
  CharacterTokenizer characters{std::string("abc"), CharacterTokenizer::Unknown::error, true};
  CharacterTokenizer bare{std::string("abc")};
  WordTokenizer words{lines};
  PublishedTokenizer pairs{byte_pairs};
  Tokens text = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  TextBatches batches{text, text, {.rows = 2, .block_size = 3}};
  TextBatches strips{text, text, {.rows = 2, .block_size = 3, .seed = 0, .order = TextOrder::consecutive}};
  BatchArrays blank = batches.blank();

  const SentencePieceTokenizer& pieces() const {
    static const SentencePieceTokenizer trained(lines, {.model = "bpe", .vocabulary_size = 24});
    return trained;
  }
  std::string vocabulary() const { return folder.write("vocab.json", R"({"a": 0})"); }
  std::string merges() const { return folder.write("merges.txt", ""); }
  Gpt2Tokenizer gpt2() const {
    const std::size_t begin = byte_pairs.find("\"vocab\": {") + 9;
    return {folder.write("vocab.json", byte_pairs.substr(begin, byte_pairs.find('}', begin) + 1 - begin)), merges()};
  }
  static DataRows rows() { return {{{"text", Column::Kind::target}}, {{{{2, 4, 3}, {}}}, {{{2, 4, 5, 3}, {}}}}}; }
  static ArrayBatches array_batches() {
    const ArrayRows rows{{{"x", Array(Dtype::float32, {2})}}};
    return {rows, rows, {}};
  }
  static RowReader reader() { return {{std::vector<float>{1, 2}}, {}}; }
  static RowBatches row_batches() { return {rows(), rows(), {.rows = 2}}; }
};

/// The rows of one class of tokenizers: what all of them do with tokens that they do not have, and moved-from ones.
template <class T>
void add_tokenizer(std::vector<Row>& rows, const std::string& name, const std::function<T()>& made,
                   const std::set<std::string>& constant) {
  const auto moved = [made] {
    T tokenizer = made();
    const T taken = std::move(tokenizer);
    return tokenizer;
  };
  // What is left of a vocabulary is an empty one, which has no token, or nothing. Some functions need neither.
  const bool is_empty = constant.count("size") != 0;
  const auto after = [&](const std::string& function, const std::string& of_empty,
                         const std::function<void(const T&)>& call) {
    const std::string error = is_empty ? of_empty : constant.count(function) != 0 ? "" : gone;
    rows.push_back({name + "::" + function, "moved", error, [=] { call(moved()); }});
  };
  after("size", "", [](const T& t) { t.size(); });
  after("decode", "outside the vocabulary", [](const T& t) { t.decode({5}); });
  after("start", "", [](const T& t) { t.start(); });
  after("end", "", [](const T& t) { t.end(); });
  after("ends", "", [](const T& t) { t.ends(); });
  after("pad", "", [](const T& t) { t.pad(); });
  after("unknown", "", [](const T& t) { t.unknown(); });
  after("pieces", "outside the vocabulary", [](const T& t) { t.pieces({5}); });
  after("to_json", "", [](const T& t) { t.to_json(); });
  after("files", "", [](const T& t) { t.files("a"); });
  for (const std::int32_t token : {-1, 1 << 30}) {
    const std::string argument = "token " + std::to_string(token);
    rows.push_back({name + "::decode", argument, "outside the vocabulary", [=] { made().decode({token}); }});
    rows.push_back({name + "::pieces", argument, "outside the vocabulary", [=] { made().pieces({token}); }});
  }
}

inline std::vector<Row> rows_of_tokenizers(World& w) {
  const std::string damaged("\xff\xfe");
  std::vector<Row> rows = {
      {"CharacterTokenizer::CharacterTokenizer", "no UTF-8", "UTF-8", [=] { CharacterTokenizer{damaged}; }},
      {"CharacterTokenizer::CharacterTokenizer", "no text", "",
       [] { CHECK(CharacterTokenizer(std::string()).size() == 0); }},
      {"CharacterTokenizer::encode", "no UTF-8", "UTF-8", [=, &w] { w.characters.encode(damaged); }},
      {"CharacterTokenizer::encode", "not in the vocabulary", "'x'", [&w] { w.characters.encode("x"); }},
      {"CharacterTokenizer::encode", "moved", "is not among the 0 characters",
       [&w] { moved_from(w.characters).encode("a"); }},
      {"WordTokenizer::WordTokenizer", "no UTF-8", "line 1 of the text",
       [=] { WordTokenizer{std::vector<std::string>{damaged}}; }},
      {"WordTokenizer::WordTokenizer", "no multiple", "the multiple of a vocabulary's size",
       [] { WordTokenizer(lines, {.multiple = 0}); }},
      {"WordTokenizer::WordTokenizer", "a negative count", "", [] { WordTokenizer(lines, {.minimum_count = -1}); }},
      {"WordTokenizer::with_vocabulary", "an empty line", "line 1 of the vocabulary: there is no word",
       [] { WordTokenizer::with_vocabulary({""}); }},
      {"WordTokenizer::with_vocabulary", "a huge multiple", "the multiple",
       [] { WordTokenizer::with_vocabulary({"a"}, {.multiple = INT64_MAX}); }},
      {"WordTokenizer::encode", "no UTF-8", "UTF-8", [=, &w] { w.words.encode(damaged); }},
      {"SentencePieceTokenizer::SentencePieceTokenizer", "no model", "are not a sentencepiece model",
       [] { SentencePieceTokenizer{std::string()}; }},
      {"SentencePieceTokenizer::SentencePieceTokenizer", "damaged", "are not a sentencepiece model",
       [] { SentencePieceTokenizer{std::string("no model")}; }},
      {"SentencePieceTokenizer::SentencePieceTokenizer", "no lines", "there is no text",
       [] { SentencePieceTokenizer(std::vector<std::string>(), {}); }},
      {"SentencePieceTokenizer::SentencePieceTokenizer", "an unknown model", "must be \"unigram\" or \"bpe\"",
       [] { SentencePieceTokenizer(lines, {.model = "none"}); }},
      {"SentencePieceTokenizer::SentencePieceTokenizer", "no pieces", "a vocabulary must have",
       [] { SentencePieceTokenizer(lines, {.vocabulary_size = -1}); }},
      {"SentencePieceTokenizer::encode", "no UTF-8", "UTF-8", [=, &w] { w.pieces().encode(damaged); }},
      {"SentencePieceTokenizer::encode", "moved", gone, [&w] { moved_from(w.pieces()).encode("a"); }},
      {"SentencePieceTokenizer::token_of", "unknown", "", [&w] { CHECK(w.pieces().token_of("nothing") == -1); }},
      {"SentencePieceTokenizer::token_of", "moved", gone, [&w] { moved_from(w.pieces()).token_of("a"); }},
      {"SentencePieceTokenizer::begins", "moved", "", [&w] { CHECK(!moved_from(w.pieces()).begins()); }},
      {"SentencePieceTokenizer::model", "moved", "", [&w] { moved_from(w.pieces()).model(); }},
      {"SentencePieceTokenizer::with_tokens", "moved", gone, [&w] { moved_from(w.pieces()).with_tokens({}).size(); }},
      {"SentencePieceTokenizer::with_tokens", "a negative size", "",
       [&w] { CHECK(w.pieces().with_tokens({.size = -1}).size() == 24); }},
      {"SentencePieceTokenizer::with_tokens", "more tokens than pieces", "",
       [&w] { w.pieces().with_tokens({.size = 99}).decode({98}); }},
      {"SentencePieceTokenizer::with_tokens", "a negative token", "the numbers are 0 to",
       [&w] { w.pieces().with_tokens({.added = {{.content = "new", .token = -1}}}); }},
      {"SentencePieceTokenizer::with_tokens", "two tokens of one number", "has this number for \"old\"",
       [&w] {
         w.pieces().with_tokens({.added = {{.content = "old", .token = 50}, {.content = "new", .token = 50}}});
       }},
      {"Gpt2Tokenizer::Gpt2Tokenizer", "no such file", "/nowhere", [&w] { Gpt2Tokenizer("/nowhere", w.merges()); }},
      {"Gpt2Tokenizer::Gpt2Tokenizer", "bytes missing", "vocab.json",
       [&w] { Gpt2Tokenizer(w.vocabulary(), w.merges()); }},
      {"Gpt2Tokenizer::Gpt2Tokenizer", "no end", "end_in_text",
       [&w] {
         w.gpt2();
         Gpt2Tokenizer(w.folder / "vocab.json", w.folder / "merges.txt", {.end_in_text = true});
       }},
      {"Gpt2Tokenizer::encode", "any bytes", "", [=, &w] { CHECK(w.gpt2().encode(damaged).size() == 2); }},
      {"Gpt2Tokenizer::encode", "moved", gone, [&w] { moved_from(w.gpt2()).encode("a"); }},
      {"PublishedTokenizer::PublishedTokenizer", "empty", "tokenizer.json: the text is empty",
       [] { PublishedTokenizer(""); }},
      {"PublishedTokenizer::PublishedTokenizer", "no tokenizer", "\"model\"", [] { PublishedTokenizer("{}"); }},
      {"PublishedTokenizer::encode", "any bytes", "", [=, &w] { CHECK(w.pairs.encode(damaged).size() == 2); }},
      {"PublishedTokenizer::encode", "moved", gone, [&w] { moved_from(w.pairs).encode("a"); }},
      {"PublishedTokenizer::token_of", "unknown", "", [&w] { CHECK(w.pairs.token_of("nothing") == -1); }},
      {"PublishedTokenizer::token_of", "moved", gone, [&w] { moved_from(w.pairs).token_of("a"); }},
      {"PublishedTokenizer::begins", "moved", "", [&w] { CHECK(!moved_from(w.pairs).begins()); }},
      {"PublishedTokenizer::template_start", "moved", gone, [&w] { moved_from(w.pairs).template_start(); }},
      {"PublishedTokenizer::template_end", "moved", gone, [&w] { moved_from(w.pairs).template_end(); }},
      {"PublishedTokenizer::in_template", "moved", gone, [&w] { moved_from(w.pairs).in_template({"a"}); }},
      {"PublishedTokenizer::in_template", "three texts", "takes one text or two, not 3",
       [&w] {
         w.pairs.in_template({"a", "b", "c"});
       }},
      {"PublishedTokenizer::with_tokens", "moved", gone, [&w] { moved_from(w.pairs).with_tokens({}).size(); }},
      {"PublishedTokenizer::with_tokens", "a token without a text", "but no text",
       [&w] { w.pairs.with_tokens({.added = {{.content = "", .token = 900}}}); }},
      {"PublishedTokenizer::with_tokens", "a huge token", "the numbers are 0 to",
       [&w] { w.pairs.with_tokens({.added = {{.content = "new", .token = INT32_MAX}}}); }},
      {"load_tokenizer", "no such file", "/nowhere", [] { load_tokenizer("/nowhere"); }},
      {"load_tokenizer", "an empty folder", "has no tokenizer", [&w] { load_tokenizer(w.folder.path()); }},
      {"load_target_tokenizer", "an empty folder", "has no tokenizer",
       [&w] { load_target_tokenizer(w.folder.path()); }},
      {"load_target_tokenizer", "no such folder", "/nowhere", [] { load_target_tokenizer("/nowhere"); }},
      {"save_tokenizer", "no such folder", "/nowhere", [&w] { save_tokenizer(w.characters, "/nowhere/a.json"); }},
      {"save_tokenizer", "moved", gone, [&w] { save_tokenizer(moved_from(w.pieces()), w.folder / "a.json"); }},
  };
  add_tokenizer<CharacterTokenizer>(rows, "CharacterTokenizer", [&w] { return w.characters; }, {"size"});
  add_tokenizer<WordTokenizer>(rows, "WordTokenizer", [&w] { return w.words; }, {"size"});
  add_tokenizer<SentencePieceTokenizer>(rows, "SentencePieceTokenizer", [&w] { return w.pieces(); }, {});
  add_tokenizer<Gpt2Tokenizer>(rows, "Gpt2Tokenizer", [&w] { return w.gpt2(); },
                               {"start", "end", "ends", "pad", "unknown"});
  add_tokenizer<PublishedTokenizer>(rows, "PublishedTokenizer", [&w] { return w.pairs; },
                                    {"start", "end", "ends", "pad", "unknown"});
  return rows;
}

}  // namespace misuse::texts
