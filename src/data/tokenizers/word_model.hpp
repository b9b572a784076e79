/// The models of tokenizers, which convert a word to the tokens of its pieces.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xtape/tokenizers.hpp"

namespace xtape {

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

}  // namespace xtape
