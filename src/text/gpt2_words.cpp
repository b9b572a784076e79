#include "gpt2_words.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {

/// White space is Unicode's White_Space, written out: PCRE2's \s takes U+180E for a space, too.
#define SPACES R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
constexpr const char* pattern_text =
    "'s|'t|'re|'ve|'m|'ll|'d"
    R"(| ?\p{L}++| ?\p{N}++| ?[^)" SPACES R"(\p{L}\p{N}]++|[)" SPACES "]+(?![^" SPACES "])|[" SPACES "]++";
#undef SPACES

using Pattern = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;

const pcre2_code* pattern() {
  static const Pattern compiled = [] {
    int error = 0;
    PCRE2_SIZE place = 0;
    Pattern made(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_text), PCRE2_ZERO_TERMINATED,
                               PCRE2_UTF | PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, &error, &place, nullptr),
                 pcre2_code_free);
    if (!made) throw Error("PCRE2 does not know GPT-2's pattern: error " + std::to_string(error));
    // Where PCRE2 was built without its compiler to machine code, it interprets the pattern.
    pcre2_jit_compile(made.get(), PCRE2_JIT_COMPLETE);
    return made;
  }();
  return compiled.get();
}

/// The text with U+0001, which is a mark of one byte, for each byte that is not UTF-8; empty where all of it is.
std::string masked(std::string_view text) {
  std::string copy;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0) {
      if (copy.empty()) copy = text;
      copy[at] = '\x01';
    }
    at += length == 0 ? 1 : length;
  }
  return copy;
}

}  // namespace

struct Gpt2Words::Match {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  ~Match() { pcre2_match_data_free(data); }
};

Gpt2Words::Gpt2Words(std::string_view text)
    : text_(text), masked_(masked(text)), seen_(masked_.empty() ? text_ : masked_), match_(std::make_unique<Match>()) {}

Gpt2Words::~Gpt2Words() = default;

std::string_view Gpt2Words::next() {
  if (at_ == text_.size()) return {};
  const auto match = [&](std::uint32_t options) {
    return pcre2_match(pattern(), reinterpret_cast<PCRE2_SPTR>(seen_.data()), seen_.size(), at_,
                       PCRE2_NO_UTF_CHECK | options, match_->data, nullptr);
  };
  int found = match(0);
  // Machine code has a small stack; the interpreter takes what it needs.
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
  const std::size_t end = found > 0 ? pcre2_get_ovector_pointer(match_->data)[1] : at_;
  if (end <= at_)
    throw Error("PCRE2 failed to cut the text at byte " + std::to_string(at_) + ": error " + std::to_string(found));
  const std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

}  // namespace xtape
