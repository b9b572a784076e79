#include <algorithm>
#include <cwctype>
#include <nlohmann/json.hpp>

#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_counts.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

namespace {

/// Returns a locale with Unicode's character tables. It is independent of the process's locale.
locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) throw Error("lower-casing needs the system's locale C.UTF-8, which is not installed");
  return locale;
}

bool is_letter(char32_t character) {
  return iswalpha_l(static_cast<wint_t>(character), unicode()) != 0;
}

/// Returns whether the character at byte `at` is a letter.
bool letter_follows(const std::string& text, std::size_t at) {
  return at < text.size() && is_letter(next_character(text, at));
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (is_space(next_character(text, at))) {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back().append(text, begin, at - begin);
    }
  }
  return words;
}

std::string lower_cased(const std::string& text) {
  constexpr char32_t capital_sigma = 0x3A3, sigma = 0x3C3, final_sigma = 0x3C2;
  constexpr char32_t capital_i_with_dot = 0x130, dot_above = 0x307;
  std::string lower;
  lower.reserve(text.size());
  bool after_letter = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character == capital_sigma) {
      append_character(lower, after_letter && !letter_follows(text, at) ? final_sigma : sigma);
    } else if (character == capital_i_with_dot) {  // the only character whose lower case has two characters
      append_character(lower, U'i');
      append_character(lower, dot_above);
    } else {
      append_character(lower, static_cast<char32_t>(towlower_l(static_cast<wint_t>(character), unicode())));
    }
    after_letter = is_letter(character);
  }
  return lower;
}

namespace {

bool is_special(const std::string& word) {
  return word == pad_name || word == unknown_name || word == start_name || word == end_name;
}

/// Calls `take` with the words of each line. Errors get the number of the line.
template <class Take>
void for_each_line(const std::vector<std::string>& lines, const char* what, const Take& take) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      take(words_in(lines[i]));
    } catch (const Error& error) {
      throw Error(std::string("line ") + std::to_string(i + 1) + " of the " + what + ": " + error.what());
    }
  }
}

}  // namespace

WordTokenizer::WordTokenizer() : words_{pad_name, unknown_name, start_name, end_name} {}

WordTokenizer::WordTokenizer(const std::vector<std::string>& lines, const WordOptions& options) : WordTokenizer() {
  lower_case_ = options.lower_case;
  WordCounts counts;
  for_each_line(lines, "text", [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) counts.add(lower_case_ ? lower_cased(word) : word);
  });
  for (const auto& [word, count] : counts.ranked())
    // A word with the spelling of a special token is not added, because the word and the token could not be told apart.
    if (count >= options.minimum_count && !is_special(word)) add(word);
  fill_up(options.multiple);
}

WordTokenizer WordTokenizer::with_vocabulary(const std::vector<std::string>& lines, const WordOptions& options) {
  WordTokenizer tokenizer;
  tokenizer.lower_case_ = options.lower_case;
  for_each_line(lines, "vocabulary", [&](const std::vector<std::string>& words) {
    if (words.empty()) throw Error("there is no word");
    if (!is_special(words[0]) && !tokenizer.add(words[0])) throw Error("the word '" + words[0] + "' is repeated");
  });
  tokenizer.fill_up(options.multiple);
  return tokenizer;
}

bool WordTokenizer::add(const std::string& word) {
  if (!tokens_.emplace(word, static_cast<std::int32_t>(words_.size())).second) return false;
  words_.push_back(word);
  return true;
}

void WordTokenizer::fill_up(std::int64_t multiple) {
  if (multiple < 1 || multiple > most_pieces)
    throw Error("the multiple of a vocabulary's size must be 1 to " + std::to_string(most_pieces) + ", got " +
                std::to_string(multiple));
  for (int number = 0; size() % multiple != 0; ++number) add("<fill" + std::to_string(number) + ">");
}

Tokens WordTokenizer::encode(const std::string& text) const {
  Tokens tokens;
  for (const std::string& word : words_in(lower_case_ ? lower_cased(text) : text)) {
    const auto found = tokens_.find(word);
    tokens.push_back(found != tokens_.end() ? found->second : unknown_token);
  }
  return tokens;
}

std::string WordTokenizer::decode(const Tokens& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    check_token(token);
    if (token == pad_token || token == start_token || token == end_token) continue;
    if (!text.empty()) text += ' ';
    text += words_[token];
  }
  return text;
}

std::string WordTokenizer::to_json() const {
  // 0 if the tokenizer was moved from
  const std::size_t special = std::min(words_.size(), std::size_t{special_token_count});
  const std::vector<std::string> words(words_.begin() + static_cast<std::ptrdiff_t>(special), words_.end());
  const nlohmann::ordered_json json = {{"xtape", 1}, {"kind", "words"}, {"lower_case", lower_case_}, {"words", words}};
  return json.dump(2) + "\n";
}

}  // namespace xtape
