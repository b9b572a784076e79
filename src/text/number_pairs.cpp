#include <algorithm>

#include "number_words.hpp"
#include "order.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

void add(PairTexts& texts, std::int64_t number) {
  NumberWords words = words_of(number);
  texts.source.push_back(std::move(words.portuguese));
  texts.target.push_back(std::move(words.english));
}
}  // namespace

SplitPairs number_words(const NumberWordsOptions& options) {
  if (options.training < 1 || options.held_out < 1 || options.held_out > number_words_end ||
      options.training > number_words_end - options.held_out)
    throw Error("there are " + std::to_string(number_words_end) + " numbers: " + std::to_string(options.training) +
                " to train with and " + std::to_string(options.held_out) + " to hold out cannot be taken from them");
  auto order = shuffled(static_cast<std::uint32_t>(number_words_end), split_seed, streams::number_split);
  // Few numbers are short, and a sample of all would hold hardly any: those that are not held out train in any case.
  constexpr std::uint32_t short_numbers_end = 1000;
  std::stable_partition(order.begin() + options.held_out, order.end(),
                        [](std::uint32_t number) { return number < short_numbers_end; });
  SplitPairs texts;
  for (std::int64_t i = 0; i < options.held_out + options.training; ++i)
    add(i < options.held_out ? texts.held_out : texts.training, order[static_cast<std::size_t>(i)]);
  return texts;
}

}  // namespace xtape
