// Writes data for models/recipes/dates_gru.json and dates_lstm.json. Each line is WRITTEN_DATE<TAB>ISO_DATE, with dates
// from 1900 to 2099. Dates are written in numbers, in English, German, French, Spanish, Portuguese and Italian, and in
// ISO 8601. The dates of FOLDER/validation.tsv are not in FOLDER/training.tsv in any format. No text is ambiguous:
// numbers alone are a day, a month and a year, unless a year of four digits comes first. A year of two digits is in
// 1970 to 2069. A named weekday is always correct.
//
// usage: dates FOLDER [TRAINING (100000) [HELD_OUT (2000)]]
//
// g++ -std=c++20 -O2 dates.cpp date_forms.cpp date_languages.cpp -o dates
#include <iostream>

#include "date_forms.hpp"
#include "files.hpp"

namespace {
using namespace dataset;
using std::chrono::days;
using std::chrono::sys_days;

/// Returns a line for the date with index `number`, counted from first_date. `counter` selects the random language and
/// format.
std::string line_of(std::uint32_t number, std::uint64_t counter) {
  constexpr std::uint64_t language_stream = 9, form_stream = 10, case_stream = 11;
  const std::chrono::year_month_day date = sys_days(first_date) + days(number);
  const DateLanguage& language = date_languages()[draw_below(date_languages().size(), language_stream, counter)];
  const std::string_view form = language.forms[draw_below(language.forms.size(), form_stream, counter)];
  const NameCase names = draw_below(2, case_stream, counter) == 0 ? NameCase::lower : NameCase::title;
  return written(date, language, form, names) + "\t" + iso(date);
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) throw std::invalid_argument("usage: dates FOLDER [TRAINING [HELD_OUT]]");
  constexpr std::int64_t most = 10000000;  // several times the number of different lines
  const auto training = static_cast<std::uint64_t>(number_argument(argc, argv, 2, 100000, 1, most));
  const auto held_out = static_cast<std::uint64_t>(number_argument(argc, argv, 3, 2000, 1, dates_count - 1));
  constexpr std::uint64_t stream = 8;
  const auto order = shuffled(static_cast<std::uint32_t>(dates_count), stream);
  const std::uint64_t others = order.size() - held_out;
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < held_out; ++i) lines.push_back(line_of(order[i], i));
  write_lines(argv[1], "validation.tsv", lines);
  lines.clear();
  // Training iterates over the other dates, and draws a new format each time.
  for (std::uint64_t i = 0; i < training; ++i) lines.push_back(line_of(order[held_out + i % others], held_out + i));
  write_lines(argv[1], "training.tsv", lines);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
