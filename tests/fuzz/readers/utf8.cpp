// UTF-8 in pieces and as a whole; the functions on characters and words.
#include "data/tokenizers/utf8.hpp"

#include "data/texts/texts.hpp"
#include "target.hpp"

namespace xtape::fuzz {

void utf8(Input input) {
  const std::string text(input);
  Utf8Stream whole_stream;
  std::string whole = whole_stream.feed(text);
  whole += whole_stream.finish();
  require(accepted([&] {
            check_utf8(whole);
            return true;
          }).has_value(),
          "a stream gives UTF-8");
  for (const std::size_t piece : {1U, 2U, 3U, 7U}) {
    Utf8Stream stream;
    std::string joined;
    for (std::size_t at = 0; at < text.size(); at += piece) joined += stream.feed(text.substr(at, piece));
    joined += stream.finish();
    require(joined == whole, "a stream of pieces gives the same as the whole");
  }
  require(escaped(escaped(text)) == escaped(text), "escaping an escaped text does not change it");

  const bool valid = accepted([&] {
                       check_utf8(text);
                       return true;
                     }).has_value();
  require(!valid || whole == text, "a stream does not change UTF-8");
  std::string again;
  std::size_t at = 0;
  while (at < text.size()) {
    if (character_length(text, at) == 0) break;
    append_character(again, next_character(text, at));
  }
  require((at == text.size()) == valid, "a text is UTF-8 if and only if each of its characters is");
  require(text.compare(0, at, again) == 0, "a character is written as it was read");

  const auto words = accepted([&] { return words_in(text); });
  require(words.has_value() == valid, "words are found in a text if and only if it is UTF-8");
  require(accepted([&] { return words_13a(text); }).has_value() == valid,
          "words of 13a are found in a text if and only if it is UTF-8");
  if (!valid) return;
  std::string joined;
  for (const std::string& word : *words) {
    require(!word.empty(), "a word is not empty");
    joined += (joined.empty() ? "" : " ") + word;
  }
  require(words_in(joined) == *words, "words joined by spaces are the same words");
  check_utf8(lower_cased(text));
}

}  // namespace xtape::fuzz
