#include "data/tokenizers/word_models.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"
#include "data/tokenizers/published.hpp"
#include "xtape/error.hpp"

namespace xtape {

Vocabulary::Vocabulary(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (!pieces_[i].empty()) tokens_.insert_or_assign(pieces_[i], static_cast<std::int32_t>(i));
}

std::int32_t Vocabulary::token_of(std::string_view piece) const {
  const auto found = tokens_.find(piece);
  return found == tokens_.end() ? -1 : found->second;
}

bool WordModel::append_bytes(std::string_view text, Tokens& tokens) const {
  const std::size_t count = tokens.size();
  for (const char byte : text) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    const std::int32_t token = vocabulary_.token_of(name);
    if (token < 0) {
      tokens.resize(count);
      return false;
    }
    tokens.push_back(token);
  }
  return true;
}

const Tokens* WordCache::find(std::string_view word) const {
  const auto found = words_.find(word);
  return found == words_.end() ? nullptr : &found->second;
}

void WordCache::add(std::string_view word, const Tokens& tokens) {
  if (word.size() > 64) return;
  if (words_.size() >= 1 << 17) words_.clear();
  words_.emplace(word, tokens);
}

WordPieces::WordPieces(Vocabulary vocabulary, std::int32_t unknown, const std::string& prefix, std::int64_t longest)
    : WordModel(std::move(vocabulary), unknown), longest_(longest) {
  for (const std::string& piece : this->vocabulary().pieces())
    if (!piece.empty()) trie_.add(piece, this->vocabulary().token_of(piece));
  rest_ = trie_.node_of(prefix);
}

Tokens WordPieces::tokens_of_word(std::string_view word) const {
  std::int64_t characters = 0;
  for (std::size_t at = 0; at < word.size() && characters <= longest_; at += character_length(word, at)) ++characters;
  if (characters > longest_) return {unknown()};
  Tokens tokens;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t longest = 0;
    std::int32_t token = -1;
    const auto keep = [&](std::size_t length, std::int32_t piece) {
      longest = length;
      token = piece;
    };
    if (at == 0)
      trie_.prefixes(word, at, keep);
    else if (rest_ >= 0)
      trie_.prefixes(word, at, keep, static_cast<std::uint32_t>(rest_));
    if (token < 0) return {unknown()};
    tokens.push_back(token);
    at += longest;
  }
  return tokens;
}

std::vector<std::string> read_pieces(const JsonNode& vocabulary, bool dense) {
  const auto entries = vocabulary.entries();
  std::vector<std::string> pieces(dense ? entries.size() : 0);
  std::vector<bool> given(pieces.size());
  for (const auto& entry : entries) {
    const JsonNode& node = entry.second;
    const auto said = [&] { return "the token of " + Json(entry.first).dump() + " is " + node.json().dump(); };
    if (dense && (!node.json().is_number_unsigned() || node.json().get<std::uint64_t>() >= entries.size()))
      node.fail(said() + "; the tokens of " + std::to_string(entries.size()) + " pieces must be the numbers 0 to " +
                std::to_string(entries.size() - 1));
    const auto token = static_cast<std::size_t>(read_token(node));
    if (token >= pieces.size()) {
      pieces.resize(token + 1);
      given.resize(token + 1);
    }
    if (given[token]) node.fail(said() + ", but " + Json(pieces[token]).dump() + " has the same token");
    given[token] = true;
    pieces[token] = entry.first;
  }
  return pieces;
}

namespace {
/// Returns the token of the entry "unk_token", or -1 if the entry is missing or null.
std::int32_t unknown_of(const JsonNode& model, const Vocabulary& vocabulary) {
  if (is_unset(model, "unk_token")) return -1;
  const std::int32_t token = vocabulary.token_of(model.at("unk_token").text());
  if (token < 0) model.at("unk_token").fail("the vocabulary has no piece \"" + model.at("unk_token").text() + "\"");
  return token;
}

void read_merge(const JsonNode& node, BytePairs& pairs) {
  std::string left, right;
  if (node.is_array()) {
    const std::vector<JsonNode> sides = node.elements();
    if (sides.size() != 2) node.fail("a merge must be a list of two pieces");
    left = sides[0].text();
    right = sides[1].text();
  } else {
    const std::size_t space = std::min(node.text().find(' '), node.text().size());
    left = node.text().substr(0, space);
    right = node.text().substr(std::min(space + 1, node.text().size()));
  }
  at_node(node, [&] { pairs.add_merge(left, right); });
}

std::unique_ptr<WordModel> read_byte_pairs(const JsonNode& model, bool by_bytes) {
  if (!is_unset(model, "dropout") && model.at("dropout").number() != 0)
    model.at("dropout").fail("\"dropout\" is not supported: it must be null");
  Vocabulary vocabulary(read_pieces(model.at("vocab"), false));
  BytePairOptions options;
  options.by_bytes = by_bytes;
  options.whole_words = flag_of(model, "ignore_merges", false);
  options.byte_fallback = flag_of(model, "byte_fallback", false);
  options.fuse_unknown = flag_of(model, "fuse_unk", false);
  options.unknown = unknown_of(model, vocabulary);
  options.prefix = text_of(model, "continuing_subword_prefix", "");
  options.suffix = text_of(model, "end_of_word_suffix", "");
  auto pairs = at_node(model.at("vocab"), [&] { return std::make_unique<BytePairs>(std::move(vocabulary), options); });
  for (const JsonNode& merge : model.at("merges").elements()) read_merge(merge, *pairs);
  return pairs;
}

std::unique_ptr<WordModel> read_unigrams(const JsonNode& model) {
  std::vector<std::string> pieces;
  std::vector<double> scores;
  for (const JsonNode& entry : model.at("vocab").elements()) {
    const std::vector<JsonNode> parts = entry.elements();
    if (parts.size() != 2) entry.fail("an entry must be a list of a piece and its score");
    pieces.push_back(parts[0].text());
    scores.push_back(parts[1].number());
  }
  const auto count = std::ssize(pieces);
  if (count == 0 || count > most_pieces)
    model.at("vocab").fail("there must be 1 to " + std::to_string(most_pieces) + " pieces");
  const bool known = model.has("unk_id") && !model.at("unk_id").is_null();
  const auto unknown = static_cast<std::int32_t>(known ? model.at("unk_id").integer(0, count - 1) : -1);
  return std::make_unique<Unigrams>(Vocabulary(std::move(pieces)), std::move(scores), unknown,
                                    flag_of(model, "byte_fallback", false));
}

std::unique_ptr<WordModel> read_word_pieces(const JsonNode& model) {
  Vocabulary vocabulary(read_pieces(model.at("vocab"), false));
  const std::int32_t unknown = unknown_of(model, vocabulary);
  if (unknown < 0) model.fail("a WordPiece model needs its \"unk_token\"");
  const bool limited = model.has("max_input_chars_per_word");
  return std::make_unique<WordPieces>(
      std::move(vocabulary), unknown, text_of(model, "continuing_subword_prefix", "##"),
      limited ? model.at("max_input_chars_per_word").integer(0, std::numeric_limits<std::int32_t>::max()) : 100);
}

/// A model whose pieces are whole words.
class WordLevel : public WordModel {
 public:
  using WordModel::WordModel;
  Tokens tokens_of_word(std::string_view word) const override {
    const std::int32_t token = vocabulary().token_of(word);
    if (token < 0 && unknown() < 0) throw Error("the vocabulary has no word '" + std::string(word) + "'");
    return {token < 0 ? unknown() : token};
  }
};

std::unique_ptr<WordModel> read_words(const JsonNode& model) {
  Vocabulary vocabulary(read_pieces(model.at("vocab"), false));
  const std::int32_t unknown = unknown_of(model, vocabulary);
  return std::make_unique<WordLevel>(std::move(vocabulary), unknown);
}
}  // namespace

std::unique_ptr<WordModel> read_model(const JsonNode& model, bool by_bytes) {
  // Older files lack the type.
  const std::string type = text_of(model, "type", "BPE");
  if (type == "BPE") return read_byte_pairs(model, by_bytes);
  if (by_bytes) model.fail("with the pre-tokenizer \"ByteLevel\" the model must be BPE, not " + type);
  if (type == "Unigram") return read_unigrams(model);
  if (type == "WordPiece") return read_word_pieces(model);
  if (type == "WordLevel") return read_words(model);
  refuse_type(model, "the model", "BPE, Unigram, WordLevel, WordPiece");
}

}  // namespace xtape
