#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/unicode.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

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
  std::unordered_map<std::string, std::int64_t> counts;
  for_each_line(lines, "text", [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) ++counts[lower_case_ ? lower_cased(word) : word];
  });
  std::vector<std::pair<std::string, std::int64_t>> ranking(counts.begin(), counts.end());
  std::ranges::sort(ranking, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (const auto& [word, count] : ranking)
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
