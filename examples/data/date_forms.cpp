#include "date_forms.hpp"

#include <stdexcept>

namespace dataset {

namespace {

using std::chrono::year;

std::string two_digits(unsigned number) {
  return std::string(number < 10 ? "0" : "") + std::to_string(number);
}

std::string named(std::string_view name, NameCase names) {
  std::string text(name);
  // Every name begins with a letter from a to z.
  if (names == NameCase::title && !text.empty()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string_view without_dot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

bool two_digits_mean(year y) {
  return y >= year{1970} && y < year{2070};
}

}  // namespace

std::string written(const std::chrono::year_month_day& date, const DateLanguage& language, std::string_view form,
                    NameCase names) {
  if (!date.ok() || date < first_date || date > last_date)
    throw std::invalid_argument("the date " + iso(date) + " is outside " + iso(first_date) + " to " + iso(last_date));
  const auto day = static_cast<unsigned>(date.day());
  const auto month = static_cast<unsigned>(date.month());
  const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
  const std::size_t weekday = std::chrono::weekday(date).iso_encoding() - 1;
  std::string text;
  for (std::size_t at = 0; at < form.size(); ++at) {
    if (form[at] != '%') {
      text += form[at];
      continue;
    }
    const char code = ++at < form.size() ? form[at] : '%';
    switch (code) {
      case 'A':
        text += named(language.weekdays[weekday], names);
        break;
      case 'a':
        text += named(language.short_weekdays[weekday], names);
        break;
      case 'B':
        text += named(language.months[month - 1], names);
        break;
      case 'b':
        text += named(language.short_months[month - 1], names);
        break;
      case 'h':
        text += named(without_dot(language.short_months[month - 1]), names);
        break;
      case 'd':
        text += two_digits(day);
        break;
      case 'e':
        text += std::to_string(day);
        break;
      case 'o':
        text += std::to_string(day).append(language.ordinal_end(day));
        break;
      case 'm':
        text += two_digits(month);
        break;
      case 'n':
        text += std::to_string(month);
        break;
      case 'Y':
        text += std::to_string(year);
        break;
      case 'y':
        text += two_digits_mean(date.year()) ? two_digits(year % 100) : std::to_string(year);
        break;
      default:
        throw std::invalid_argument("the form \"" + std::string(form) + "\" has the unknown code '%" + code + "'");
    }
  }
  return text;
}

std::string iso(const std::chrono::year_month_day& date) {
  return std::to_string(static_cast<int>(date.year())) + "-" + two_digits(static_cast<unsigned>(date.month())) + "-" +
         two_digits(static_cast<unsigned>(date.day()));
}

}  // namespace dataset
