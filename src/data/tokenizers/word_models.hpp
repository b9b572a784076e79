/// The models of tokenizer.json: byte pairs, unigrams and word pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tokenizers/trie.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

// The models of tokenizers, which convert a word to the tokens of its pieces.

struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// The pieces by token. An unused token has the piece "".
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> pieces);
  /// Returns the token of a piece, or -1 if there is no such piece. If several tokens have the piece, returns the last
  /// of them.
  std::int32_t token_of(std::string_view piece) const;
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<std::string> pieces_;
  TextMap<std::int32_t> tokens_;
};

class WordModel {
 public:
  WordModel(Vocabulary vocabulary, std::int32_t unknown) : vocabulary_(std::move(vocabulary)), unknown_(unknown) {}
  virtual ~WordModel() = default;
  virtual Tokens tokens_of_word(std::string_view word) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::int32_t unknown() const { return unknown_; }  ///< -1 if there is none

 protected:
  /// Appends the token of a piece such as "<0x0A>" for each byte of the text. If the vocabulary lacks one of these
  /// pieces, appends nothing and returns false.
  bool append_bytes(std::string_view text, Tokens& tokens) const;

 private:
  Vocabulary vocabulary_;
  std::int32_t unknown_;
};

/// A cache of words and their tokens. Words of more than 64 bytes rarely recur and are not cached. The cache is cleared
/// when it reaches 2^17 words.
class WordCache {
 public:
  const Tokens* find(std::string_view word) const;
  void add(std::string_view word, const Tokens& tokens);

 private:
  TextMap<Tokens> words_;
};

// Byte-pair encoding: merges of two tokens into one, by rank.

/// A list of merges in order of rank (Sennrich, Haddow, Birch, 2016, "Neural Machine Translation of Rare Words with
/// Subword Units").
class Merges {
 public:
  /// Adds the merge of the next rank: `left` and `right` become `token`. Returns false if the pair already has a merge.
  bool add(std::int32_t left, std::int32_t right, std::int32_t token);
  /// Applies the merge of the lowest rank (the leftmost, if several are equal) until no merge applies. Takes O(n log n)
  /// time.
  void apply(Tokens& tokens) const;

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t token;
  };
  struct Mix {
    std::size_t operator()(std::uint64_t pair) const { return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15U >> 16; }
  };
  const Merge* find(std::int32_t left, std::int32_t right) const;

  std::unordered_map<std::uint64_t, Merge, Mix> merges_;
};

// Byte-pair encoding of bytes or characters.

struct BytePairOptions {
  bool by_bytes = false;       ///< Whether words consist of bytes. Pieces are then written with byte symbols.
  bool whole_words = false;    ///< Whether a word that is a piece becomes this piece without merges.
  bool byte_fallback = false;  ///< Whether characters that are not pieces become the pieces of their bytes.
  bool fuse_unknown = false;   ///< Whether neighbouring unknown characters are one token.
  std::int32_t unknown = -1;   ///< The token of unknown characters. If it is -1, these characters are left out.
  std::string prefix = {};     ///< The beginning of pieces for characters that do not begin a word.
  std::string suffix = {};     ///< The end of pieces for characters that end a word.
};

class BytePairs : public WordModel {
 public:
  /// Throws Error if words consist of bytes and a byte has no piece.
  BytePairs(Vocabulary vocabulary, BytePairOptions options);
  /// Adds the merge of the next rank. Throws Error if a piece is not in the vocabulary, or if the merge was already
  /// added.
  void add_merge(const std::string& left, const std::string& right);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  Tokens characters_of(std::string_view word) const;

  BytePairOptions options_;
  Merges merges_;
};

// A unigram language model of pieces.

/// Splits a word into the pieces of greatest probability, by dynamic programming (Kudo, 2018, "Subword
/// Regularization"). Takes time proportional to the length of the word times the length of the longest piece.
class Unigrams : public WordModel {
 public:
  /// `scores` are the logarithms of the pieces' probabilities. With `byte_fallback`, an unknown character becomes the
  /// pieces of its bytes. Throws Error if a word cannot be split and `unknown` is -1.
  Unigrams(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown, bool byte_fallback);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  std::vector<double> scores_;
  double unknown_score_ = 0;
  bool byte_fallback_;
  Trie trie_;
};

// WordPiece, the pieces of BERT.

/// Splits a word into pieces. The first piece is the longest piece with which the word begins. The rest is split in the
/// same way, into pieces with a prefix (Devlin et al., 2019, "BERT"). A word becomes one unknown token if the word is
/// too long, or if the word or a rest does not begin with any piece.
class WordPieces : public WordModel {
 public:
  WordPieces(Vocabulary vocabulary, std::int32_t unknown, const std::string& prefix, std::int64_t longest);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  Trie trie_;
  std::int64_t rest_;  // the trie node of the prefix, or -1 if no piece has the prefix
  std::int64_t longest_;
};

// Reads the models of tokenizer.json.

/// Returns the pieces by token. An unused token has the piece "". A `dense` vocabulary must have no unused tokens.
std::vector<std::string> read_pieces(const JsonNode& vocabulary, bool dense);

/// Returns the model of the entry "model": BPE, Unigram or WordPiece. If `by_bytes`, words consist of bytes. Throws
/// FileError at an unsupported entry.
std::unique_ptr<WordModel> read_model(const JsonNode& model, bool by_bytes);

}  // namespace xtape
