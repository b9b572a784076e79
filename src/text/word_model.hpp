/// The models of tokenizers: from a word to the tokens of its pieces.
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

/// The pieces by token; "" for an unused token.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> pieces);
  /// The token of a piece; -1 if there is no such piece. Of equal pieces the last.
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
  std::int32_t unknown() const { return unknown_; }  ///< -1: none.

 protected:
  /// Appends the tokens of the pieces "<0x0A>" … of all bytes, if the vocabulary has all of them; otherwise returns
  /// false.
  bool append_bytes(std::string_view text, Tokens& tokens) const;

 private:
  Vocabulary vocabulary_;
  std::int32_t unknown_;
};

/// A cache of words and their tokens. Words of more than 64 bytes rarely recur and are not cached; 2^17 words clear it.
class WordCache {
 public:
  const Tokens* find(std::string_view word) const;
  void add(std::string_view word, const Tokens& tokens);

 private:
  TextMap<Tokens> words_;
};

}  // namespace xtape
