#include "pre_tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {

/// Unicode's property White_Space, written out, because PCRE2's \s also includes U+180E.
#define SPACES R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
constexpr const char* gpt2_pattern =
    "'s|'t|'re|'ve|'m|'ll|'d"
    R"(| ?\p{L}++| ?\p{N}++| ?[^)" SPACES R"(\p{L}\p{N}]++|[)" SPACES "]+(?![^" SPACES "])|[" SPACES "]++";

/// The pattern with \s and \S replaced by classes of Unicode's White_Space.
std::string with_spaces(const std::string& pattern) {
  std::string text;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool escape = pattern[at] == '\\' && at + 1 < pattern.size();
    if (escape && pattern[at + 1] == 's') {
      text += in_class ? SPACES : "[" SPACES "]";
    } else if (escape && pattern[at + 1] == 'S' && !in_class) {
      text += "[^" SPACES "]";
    } else if (escape) {
      text += pattern.substr(at, 2);
    } else {
      if (pattern[at] == '[') in_class = true;
      if (pattern[at] == ']') in_class = false;
      text += pattern[at];
      continue;
    }
    ++at;
  }
  return text;
}
#undef SPACES

std::shared_ptr<const void> compiled_pattern(const std::string& text) {
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* made = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &place, nullptr);
  if (made == nullptr) {
    PCRE2_UCHAR message[120];
    pcre2_get_error_message(error, message, sizeof message);
    throw Error("the word pattern is not a valid regular expression: " +
                std::string(reinterpret_cast<const char*>(message)));
  }
  // The result is ignored: if PCRE2 was built without its JIT compiler, it interprets the pattern.
  pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
  return {made, [](pcre2_code* code) { pcre2_code_free(code); }};
}

/// The text with U+0001, which is one byte and matches as punctuation, for each byte that is not UTF-8; empty if all
/// of it is UTF-8.
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

WordPattern::WordPattern(const std::string& pattern) {
  check_utf8(pattern);
  compiled_ = compiled_pattern(with_spaces(pattern));
}

const WordPattern& WordPattern::gpt2() {
  static const WordPattern pattern{gpt2_pattern};
  return pattern;
}

struct PreTokenizer::Match {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  ~Match() { pcre2_match_data_free(data); }
};

PreTokenizer::PreTokenizer(std::string_view text, const WordPattern& pattern)
    : pattern_(pattern),
      text_(text),
      masked_(masked(text)),
      seen_(masked_.empty() ? text_ : masked_),
      match_(std::make_unique<Match>()) {}

PreTokenizer::~PreTokenizer() = default;

std::string_view PreTokenizer::next() {
  if (at_ == text_.size()) return {};
  if (found_end_ <= at_) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(static_cast<const pcre2_code*>(pattern_.compiled()),
                         reinterpret_cast<PCRE2_SPTR>(seen_.data()), seen_.size(), at_,
                         PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options, match_->data, nullptr);
    };
    int found = match(0);
    // The JIT's stack is limited; the interpreter allocates the memory that it needs.
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
      throw Error("PCRE2 failed to split the text at byte " + std::to_string(at_) + ": error " + std::to_string(found));
    found_begin_ = found > 0 ? pcre2_get_ovector_pointer(match_->data)[0] : text_.size();
    found_end_ = found > 0 ? pcre2_get_ovector_pointer(match_->data)[1] : text_.size();
  }
  const std::size_t end = at_ < found_begin_ ? found_begin_ : found_end_;
  const std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

}  // namespace xtape
