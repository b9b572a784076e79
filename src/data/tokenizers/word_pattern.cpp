#include "data/tokenizers/word_pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <memory>
#include <new>

#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {

/// The property White_Space of Unicode, written out because PCRE2's \s also includes U+180E.
#define SPACES R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
/// Oniguruma's \w, because PCRE2's \w has fewer characters. It includes the superscripts and fractions of Latin-1.
#define WORDS R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\xB2\xB3\xB9\xBC-\xBE)"
constexpr const char* gpt2_pattern =
    "'s|'t|'re|'ve|'m|'ll|'d"
    R"(| ?\p{L}++| ?\p{N}++| ?[^)" SPACES R"(\p{L}\p{N}]++|[)" SPACES "]+(?![^" SPACES "])|[" SPACES "]++";

/// Returns the pattern with \s, \S, \w and \W replaced by the corresponding classes of Oniguruma.
std::string with_classes(const std::string& pattern) {
  std::string text;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      const char name = pattern[++at];
      if (name == 's' || name == 'w')
        text += (in_class ? "" : "[") + std::string(name == 's' ? SPACES : WORDS) + (in_class ? "" : "]");
      else if ((name == 'S' || name == 'W') && !in_class)
        text += "[^" + std::string(name == 'S' ? SPACES : WORDS) + "]";
      else
        text += {'\\', name};
      continue;
    }
    // PCRE2 reads a class inside a class, and an intersection of classes, as a union of characters.
    if (in_class && ((pattern[at] == '[' && pattern.compare(at, 2, "[:") != 0) || pattern.compare(at, 2, "&&") == 0))
      throw Error("a class of characters inside a class, and &&, are not supported in the pattern " + pattern);
    if (in_class && pattern.compare(at, 2, "[:") == 0) {
      const std::size_t end = pattern.find(":]", at);
      if (end == std::string::npos) throw Error("the word pattern has [: without :]");
      text += pattern.substr(at, end + 2 - at);
      at = end + 1;
      continue;
    }
    if (pattern[at] == '[') in_class = true;
    if (pattern[at] == ']') in_class = false;
    text += pattern[at];
  }
  return text;
}
#undef SPACES
#undef WORDS

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
  // Ignores the result. If PCRE2 was built without its JIT compiler, it interprets the pattern.
  pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
  return {made, [](pcre2_code* code) { pcre2_code_free(code); }};
}

/// Returns the text with U+0001 in place of each byte that is not UTF-8. U+0001 is one byte and matches as punctuation.
/// Returns an empty text if the whole text is UTF-8.
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

/// The storage for matches. Each thread has its own, because a text may be a word of a few bytes and an allocation for
/// each would be slow.
pcre2_match_data* match_data() {
  struct Free {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  thread_local const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(1, nullptr));
  if (!data) throw std::bad_alloc();
  return data.get();
}

}  // namespace

WordPattern::WordPattern(const std::string& pattern) {
  check_utf8(pattern);
  compiled_ = compiled_pattern(with_classes(pattern));
}

WordPattern WordPattern::literal(const std::string& text) {
  std::string pattern;
  for (const char byte : text) {
    if (std::ispunct(static_cast<unsigned char>(byte)) != 0) pattern += '\\';
    pattern += byte;
  }
  return WordPattern(pattern);
}

const WordPattern& WordPattern::gpt2() {
  static const WordPattern pattern{gpt2_pattern};
  return pattern;
}

namespace {
/// Returns the context for a match in a long text. The steps of a match are proportional to the length of the text, but
/// PCRE2's own limit is a constant.
std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context_for(std::size_t bytes) {
  constexpr std::size_t steps = 32;  // limit of steps per byte; a pattern that takes more is an error
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(pcre2_match_context_create(nullptr),
                                                                                    &pcre2_match_context_free);
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(std::min<std::size_t>(UINT32_MAX, steps * bytes)));
  return context;
}
}  // namespace

void WordPattern::cut(std::string_view text, const std::function<void(const Span&)>& visit) const {
  const std::string copy = masked(text);
  const std::string_view seen = copy.empty() ? text : copy;
  // The visitor may split its words with other patterns, so `data` must not be used after a visit.
  pcre2_match_data* data = match_data();
  std::size_t done = 0, at = 0, last_end = std::string_view::npos;
  while (at <= seen.size()) {
    const auto match = [&](std::uint32_t options, pcre2_match_context* context = nullptr) {
      return pcre2_match(static_cast<const pcre2_code*>(compiled_.get()), reinterpret_cast<PCRE2_SPTR>(seen.data()),
                         seen.size(), at, PCRE2_NO_UTF_CHECK | options, data, context);
    };
    int found = match(0);
    // The JIT's stack is limited. The interpreter allocates the memory that it needs.
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_MATCHLIMIT) found = match(PCRE2_NO_JIT, context_for(seen.size() - at).get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw Error("PCRE2 failed to split the text at byte " + std::to_string(at) + ": error " + std::to_string(found));
    const std::size_t begin = pcre2_get_ovector_pointer(data)[0], end = pcre2_get_ovector_pointer(data)[1];
    if (begin < at) throw Error("the word pattern matches before the place where it is tried");
    if (begin == end && end == last_end) {  // an empty match directly after a match does not count
      at += at == seen.size() ? 1 : character_length(seen, at);
      continue;
    }
    at = last_end = end;
    if (done < begin) visit({done, begin, false});
    visit({begin, end, true});
    done = end;
  }
  if (done < text.size()) visit({done, text.size(), false});
}

std::string WordPattern::replaced(const std::string& text, const std::string& with) const {
  std::string result;
  cut(text, [&](const Span& span) { result += span.matched ? with : text.substr(span.begin, span.end - span.begin); });
  return result;
}

}  // namespace xtape
