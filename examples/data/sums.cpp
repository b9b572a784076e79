// Writes data for models/recipes/adder.json: one sum of two numbers per line, such as 47+85=132. FOLDER/training.txt
// and FOLDER/validation.txt have no sum in common.
//
// usage: sums FOLDER [DIGITS (2) [HELD_OUT (2000, or a fifth of all sums if that is less) [reversed] [padded]]]
//
// reversed: the sum begins with its last digit. padded: numbers have leading zeros.
//
// g++ -std=c++20 -O2 sums.cpp -o sums
#include <algorithm>
#include <iostream>

#include "files.hpp"

namespace {

std::string written(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::invalid_argument("usage: sums FOLDER [DIGITS [HELD_OUT [reversed] [padded]]]");
  const auto digits = static_cast<std::size_t>(dataset::number_argument(argc, argv, 2, 2, 1, 3));
  const std::int64_t numbers = digits == 1 ? 10 : digits == 2 ? 100 : 1000;
  const std::int64_t held_out = dataset::number_argument(
      argc, argv, 3, std::min<std::int64_t>(2000, numbers * numbers / 5), 1, numbers * numbers - 1);
  bool reversed = false;
  bool padded = false;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    if (word != "reversed" && word != "padded") throw std::invalid_argument("unknown argument '" + word + "'");
    (word == "reversed" ? reversed : padded) = true;
  }
  constexpr std::uint64_t stream = 3;
  std::vector<std::string> validation;
  std::vector<std::string> training;
  for (const std::uint32_t place : dataset::shuffled(static_cast<std::uint32_t>(numbers * numbers), stream)) {
    const std::int64_t a = place / numbers;
    const std::int64_t b = place % numbers;
    std::string sum = written(a + b, padded ? digits + 1 : 0);
    if (reversed) std::reverse(sum.begin(), sum.end());
    const std::size_t width = padded ? digits : 0;
    (static_cast<std::int64_t>(validation.size()) < held_out ? validation : training)
        .push_back(written(a, width) + "+" + written(b, width) + "=" + sum);
  }
  dataset::write_lines(argv[1], "training.txt", training);
  dataset::write_lines(argv[1], "validation.txt", validation);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
