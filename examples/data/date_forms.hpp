/// Dates as people write them: names of months and weekdays in several languages, and date formats.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dataset {

inline constexpr std::chrono::year_month_day first_date{std::chrono::year{1900}, std::chrono::January,
                                                        std::chrono::day{1}};
inline constexpr std::chrono::year_month_day last_date{std::chrono::year{2099}, std::chrono::December,
                                                       std::chrono::day{31}};

inline constexpr std::int64_t dates_count =
    (std::chrono::sys_days(last_date) - std::chrono::sys_days(first_date)).count() + 1;

/// The names and date formats of one language. Names are in lower case. No name has another meaning in another
/// language.
struct DateLanguage {
  std::string_view name;
  std::array<std::string_view, 12> months;
  std::array<std::string_view, 12> short_months;   ///< With a dot, if the language writes one.
  std::array<std::string_view, 7> weekdays;        ///< Monday is the first.
  std::array<std::string_view, 7> short_weekdays;  ///< Empty if no form of the language uses them.
  std::string_view (*ordinal_end)(unsigned day);   ///< The ending of an ordinal: "rd" of "3rd".
  std::span<const std::string_view> forms;         ///< Formats with codes that `written` replaces.
};

/// The languages. The first language contains numeric dates and has no names.
std::span<const DateLanguage> date_languages();

enum class NameCase { lower, title };

/// Writes a date in a format of the language. The codes resemble those of strftime:
/// %A weekday, %a its short name, %B month, %b its short name, %h the same without a dot, %e day, %d day with two
/// digits, %o day with its ordinal ending, %n number of the month, %m the same with two digits, %Y year, %y year with
/// two digits from 1970 to 2069 and with four digits otherwise, so that 1905 is not read as 2005.
/// Throws std::invalid_argument if the date is not in [first_date, last_date] or a code is unknown.
std::string written(const std::chrono::year_month_day& date, const DateLanguage& language, std::string_view form,
                    NameCase names);

/// Writes a date in ISO 8601: "1998-05-03".
std::string iso(const std::chrono::year_month_day& date);

}  // namespace dataset
