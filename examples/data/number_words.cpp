// Writes data for models/recipes/number_words.json: numbers from 0 to 999,999 in words. Each line is
// portuguese<TAB>english. FOLDER/training.tsv and FOLDER/validation.tsv have no number in common.
//
// usage: number_words FOLDER [TRAINING (100000) [HELD_OUT (2000)]]
//
// g++ -std=c++20 -O2 number_words.cpp -o number_words
#include "number_words.hpp"

#include <algorithm>
#include <iostream>

#include "files.hpp"

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) throw std::invalid_argument("usage: number_words FOLDER [TRAINING [HELD_OUT]]");
  using namespace dataset;
  const std::int64_t training = number_argument(argc, argv, 2, 100000, 1, number_words_end - 1);
  const std::int64_t held_out = number_argument(argc, argv, 3, 2000, 1, number_words_end - training);
  constexpr std::uint64_t stream = 7;
  auto order = shuffled(static_cast<std::uint32_t>(number_words_end), stream);
  // A uniform sample would contain hardly any numbers below 1000. Training therefore uses all of them that are not held
  // out.
  constexpr std::uint32_t short_numbers_end = 1000;
  std::stable_partition(order.begin() + held_out, order.end(),
                        [](std::uint32_t number) { return number < short_numbers_end; });
  std::vector<std::string> lines;
  for (std::int64_t i = 0; i < held_out + training; ++i) {
    const NumberWords words = words_of(order[static_cast<std::size_t>(i)]);
    lines.push_back(words.portuguese + "\t" + words.english);
  }
  write_lines(argv[1], "validation.tsv", {lines.begin(), lines.begin() + held_out});
  write_lines(argv[1], "training.tsv", {lines.begin() + held_out, lines.end()});
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
