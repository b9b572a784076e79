/// Numbers in words of two languages: the pairs of a translation task that the program makes itself.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

inline constexpr std::int64_t number_words_end = 1000000;  ///< The first number that has no words here.

struct NumberWords {
  std::string portuguese;  ///< As written in Brazil: "mil duzentos e trinta e quatro".
  std::string english;     ///< As written in Britain: "one thousand two hundred and thirty-four".
};

/// Throws Error unless `number` is in [0, number_words_end).
NumberWords words_of(std::int64_t number);

}  // namespace xtape
