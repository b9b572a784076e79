// Numbers in Portuguese and English words.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace dataset {

using Below20 = std::array<const char*, 20>;
using Tens = std::array<const char*, 10>;

inline constexpr Below20 english_ones = {
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
inline constexpr Tens english_tens = {"",      "",      "twenty",  "thirty", "forty",
                                      "fifty", "sixty", "seventy", "eighty", "ninety"};

inline constexpr Below20 portuguese_ones = {
    "zero", "um",   "dois", "três",  "quatro",  "cinco",  "seis",      "sete",      "oito",    "nove",
    "dez",  "onze", "doze", "treze", "catorze", "quinze", "dezesseis", "dezessete", "dezoito", "dezenove"};
inline constexpr Tens portuguese_tens = {"",          "",         "vinte",   "trinta",  "quarenta",
                                         "cinquenta", "sessenta", "setenta", "oitenta", "noventa"};
inline constexpr Tens portuguese_hundreds = {"",           "cento",      "duzentos",   "trezentos",  "quatrocentos",
                                             "quinhentos", "seiscentos", "setecentos", "oitocentos", "novecentos"};

inline std::string english_words(std::size_t number) {
  if (number < 20) return english_ones[number];
  if (number < 100) {
    const std::string tens = english_tens[number / 10];
    return number % 10 == 0 ? tens : tens + "-" + english_ones[number % 10];
  }
  const std::size_t unit = number < 1000 ? 100 : 1000;
  const std::size_t rest = number % unit;
  const std::string words = english_words(number / unit) + (unit == 100 ? " hundred" : " thousand");
  if (rest == 0) return words;
  return words + (rest < 100 ? " and " : " ") + english_words(rest);
}

inline std::string portuguese_words(std::size_t number) {
  if (number < 20) return portuguese_ones[number];
  if (number == 100) return "cem";
  if (number < 1000) {
    const std::size_t unit = number < 100 ? 10 : 100;
    const std::string words = (unit == 10 ? portuguese_tens : portuguese_hundreds)[number / unit];
    return number % unit == 0 ? words : words + " e " + portuguese_words(number % unit);
  }
  const std::string words = number < 2000 ? "mil" : portuguese_words(number / 1000) + " mil";
  const std::size_t rest = number % 1000;
  if (rest == 0) return words;
  // "e" follows the thousands if the rest is below a hundred or a multiple of a hundred.
  return words + (rest < 100 || rest % 100 == 0 ? " e " : " ") + portuguese_words(rest);
}

inline constexpr std::int64_t number_words_end = 1000000;  ///< The first number that is not supported.

struct NumberWords {
  std::string portuguese;  ///< As written in Brazil: "mil duzentos e trinta e quatro".
  std::string english;     ///< As written in Britain: "one thousand two hundred and thirty-four".
};

/// Throws std::out_of_range if `number` is not in [0, number_words_end).
inline NumberWords words_of(std::int64_t number) {
  if (number < 0 || number >= number_words_end)
    throw std::out_of_range("the number " + std::to_string(number) + " is outside 0 to " +
                            std::to_string(number_words_end - 1));
  return {portuguese_words(static_cast<std::size_t>(number)), english_words(static_cast<std::size_t>(number))};
}

}  // namespace dataset
