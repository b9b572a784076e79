/// Dates as people write them: the names that languages have for months and weekdays, and the forms of their dates.
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

/// How one language writes dates. Names are in lower case, and no name means something else in another language.
struct DateLanguage {
  std::string_view name;
  std::array<std::string_view, 12> months;
  std::array<std::string_view, 12> short_months;   ///< With the dot, where one is written.
  std::array<std::string_view, 7> weekdays;        ///< From Monday on.
  std::array<std::string_view, 7> short_weekdays;  ///< Empty where no form of the language has them.
  std::string_view (*ordinal_end)(unsigned day);   ///< "rd" of "3rd".
  std::span<const std::string_view> forms;         ///< Each with codes that `written` replaces.
};

/// The languages; the first is that of numbers, which has no names.
std::span<const DateLanguage> date_languages();

enum class NameCase { lower, title };

/// A date in a form of the language. Codes, much as those of strftime:
/// %A weekday, %a its short name, %B month, %b its short name, %h the same without a dot, %e day, %d day of two digits,
/// %o day with its ordinal's end, %n number of the month, %m the same of two digits, %Y year, %y year of two digits
/// from 1970 to 2069 and of four in any other, so that nobody takes 1905 for 2005. Throws std::invalid_argument unless the date is in
/// [first_date, last_date] and the codes are known.
std::string written(const std::chrono::year_month_day& date, const DateLanguage& language, std::string_view form,
                    NameCase names);

/// A date as ISO 8601 has it: "1998-05-03".
std::string iso(const std::chrono::year_month_day& date);

}  // namespace dataset
