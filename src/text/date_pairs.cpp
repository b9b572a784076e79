#include "date_forms.hpp"
#include "order.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
using std::chrono::days;
using std::chrono::sys_days;

/// Writes the date of that number, counted from the first one, in a form drawn for the pair of that counter.
void add(PairTexts& texts, std::uint32_t number, std::uint64_t counter) {
  const auto draw = [counter](std::size_t bound, std::uint64_t stream) {
    return static_cast<std::size_t>(draw_below(bound, split_seed, stream, counter));
  };
  const std::chrono::year_month_day date = sys_days(first_date) + days(number);
  const DateLanguage& language = date_languages()[draw(date_languages().size(), streams::date_language)];
  const std::string_view form = language.forms[draw(language.forms.size(), streams::date_form)];
  texts.source.push_back(
      written(date, language, form, draw(2, streams::date_case) == 0 ? NameCase::lower : NameCase::title));
  texts.target.push_back(iso(date));
}
}  // namespace

SplitPairs dates(const DatesOptions& options) {
  if (options.held_out < 1 || options.held_out >= dates_count)
    throw Error("of " + std::to_string(dates_count) + " dates, between 1 and " + std::to_string(dates_count - 1) +
                " can be held out, not " + std::to_string(options.held_out));
  if (options.training < 1 || options.training > most_written_dates)
    throw Error("at least 1 written date must be there to train with, and at most " +
                std::to_string(most_written_dates) + ", not " + std::to_string(options.training));
  const auto order = shuffled(static_cast<std::uint32_t>(dates_count), split_seed, streams::date_split);
  const auto held_out = static_cast<std::uint64_t>(options.held_out);
  const std::uint64_t others = order.size() - held_out;
  SplitPairs pairs;
  for (std::uint64_t i = 0; i < held_out; ++i) add(pairs.held_out, order[i], i);
  // The other dates train in turn, each time in another form.
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(options.training); ++i)
    add(pairs.training, order[held_out + i % others], held_out + i);
  return pairs;
}

}  // namespace xtape
