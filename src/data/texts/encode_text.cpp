// Tokenises texts of any size in pieces.
#include <algorithm>
#include <exception>

#include "base/system/process_memory.hpp"
#include "base/threads/threads.hpp"
#include "data/texts/long_text.hpp"
#include "data/texts/token_files.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::size_t usual_piece = std::size_t{2} << 20;  // a shorter text is one piece
constexpr std::size_t context_bytes = 512;  // at least as much of the text before a piece is tokenised with it
constexpr std::size_t ahead_bytes = 4096;   // text after a cut that shows whether a token goes over it
constexpr std::size_t looked_at = std::size_t{64} << 10;  // where a cut is looked for, and its context begins
constexpr int most_tries = 200;
constexpr int pieces_at_once = 4;  // because each holds a piece and its tokens

/// A piece of the text, after some text of the piece before it.
struct TextPiece {
  std::string text;
  std::size_t context = 0;  // bytes
  Tokens tokens = {};       // without those of the context
  std::exception_ptr error = {};
};

bool begins_with(const Tokens& tokens, const Tokens& first) {
  return tokens.size() >= first.size() && std::equal(first.begin(), first.end(), tokens.begin());
}

void encode(const Tokenizer& tokenizer, TextPiece& piece) try {
  piece.tokens = tokenizer.encode(piece.text);
  if (piece.context == 0) return;
  const Tokens before = tokenizer.encode(piece.text.substr(0, piece.context));
  if (!begins_with(piece.tokens, before)) throw Error("the tokenizer cannot encode this text in pieces");
  piece.tokens.erase(piece.tokens.begin(), piece.tokens.begin() + std::ssize(before));
} catch (...) {
  piece.error = std::current_exception();
}

/// Cuts a text into pieces, and gives them to `take` in order. The tokens before and after a cut are those of the whole
/// text if no token goes over the cut. Words, and what tokenizers do with the characters in them, depend on the text
/// nearby only. So this can be seen from the tokens of the text around the cut.
template <class Take>
class Cutter {
 public:
  Cutter(const Tokenizer& tokenizer, const Take& take)
      : tokenizer_(tokenizer), take_(take), anywhere_(dynamic_cast<const CharacterTokenizer*>(&tokenizer) != nullptr) {}

  void add(std::string_view text) {
    if (held_.size() + text.size() > held_.capacity())
      require_memory_left(2 * (held_.size() + text.size()), "a text without a place where its tokens can be cut");
    held_ += text;
    if (held_.size() < context_ + enough_ + ahead_bytes) return;
    if (const std::size_t cut = find_cut(); cut > 0) {
      const std::size_t context = context_before(cut);
      take_(TextPiece{held_.substr(0, cut), context_});
      held_.erase(0, cut - context);
      context_ = context;
      enough_ = usual_piece;
    } else {
      enough_ *= 2;
    }
  }
  void finish() {
    if (held_.size() > context_) take_(TextPiece{std::move(held_), context_});
  }

 private:
  static bool is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }
  bool begins_character(std::size_t at) const { return (static_cast<unsigned char>(held_[at]) & 0xC0) != 0x80; }
  /// Whether the text may be cut at a place: before the space after a word, where few tokenizers have tokens that go
  /// over the cut.
  bool is_candidate(std::size_t at) const {
    if (anywhere_) return begins_character(at);
    return (held_[at] == ' ' || held_[at] == '\n') && !is_space(held_[at - 1]);
  }
  std::size_t candidate_before(std::size_t at, std::size_t least) const {
    while (at > least && !is_candidate(at)) --at;
    return at > least ? at : 0;
  }
  /// Returns the length of the context of a cut, or 0 if there is none.
  std::size_t context_before(std::size_t cut) const {
    const std::size_t begin = candidate_before(cut - context_bytes, cut - std::min(cut, looked_at));
    return begin == 0 ? 0 : cut - begin;
  }
  bool can_cut(std::size_t cut) const {
    const std::size_t context = context_before(cut);
    if (context == 0) return false;
    std::size_t end = cut + ahead_bytes;
    while (!begins_character(end)) --end;
    const Tokens before = tokenizer_.encode(held_.substr(cut - context, context));
    return begins_with(tokenizer_.encode(held_.substr(cut - context, context + end - cut)), before);
  }
  /// Returns the last place near the end at which the text can be cut, or 0.
  std::size_t find_cut() const {
    std::size_t cut = held_.size() - ahead_bytes;
    const std::size_t least = std::max(context_ + context_bytes, cut - std::min(cut, looked_at));
    for (int tries = 0; tries < most_tries; ++tries) {
      cut = candidate_before(cut - 1, least);
      if (cut == 0 || can_cut(cut)) return cut;
    }
    return 0;
  }

  const Tokenizer& tokenizer_;
  const Take& take_;
  bool anywhere_;
  std::string held_;         // begins with the context
  std::size_t context_ = 0;  // the bytes at its beginning that belong to the piece before
  std::size_t enough_ = usual_piece;
};

/// Tokenises pieces on several threads.
class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, TokenWriter& tokens)
      : tokenizer_(tokenizer), tokens_(tokens), threads_(std::min(thread_count(), pieces_at_once)) {}
  void add(TextPiece piece) {
    pieces_.push_back(std::move(piece));
    if (std::ssize(pieces_) == threads_) encode_all();
  }
  void encode_all() {
    parallel_each(threads_, std::ssize(pieces_), [&](std::int64_t i) { encode(tokenizer_, pieces_[i]); });
    for (const TextPiece& piece : pieces_) {
      if (piece.error) std::rethrow_exception(piece.error);
      tokens_.add(piece.tokens.data(), piece.tokens.size());
    }
    pieces_.clear();
  }

 private:
  const Tokenizer& tokenizer_;
  TokenWriter& tokens_;
  int threads_;
  std::vector<TextPiece> pieces_;
};
}  // namespace

void encode_text(const Tokenizer& tokenizer, const LongText& text, TokenWriter& tokens) try {
  Encoder encoder(tokenizer, tokens);
  const auto take = [&](TextPiece piece) { encoder.add(std::move(piece)); };
  Cutter cutter(tokenizer, take);
  text.read([&](std::string_view piece) { cutter.add(piece); }, "tokenising");
  cutter.finish();
  encoder.encode_all();
} catch (const FileError&) {
  throw;
} catch (const OutOfMemory&) {
  throw;
} catch (const Error& error) {
  text.fail_at_line([&](const std::string& line) { tokenizer.encode(line); }, error.what());
}

}  // namespace xtape
