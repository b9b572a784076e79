#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>

#include "date_forms.hpp"
#include "programs.hpp"
#include "xtape/tokenizers.hpp"

using namespace dataset;
using xtape::PairTexts;
using namespace std::chrono;

namespace {

const DateLanguage& language(std::string_view name) {
  const auto all = date_languages();
  const auto found = std::find_if(all.begin(), all.end(), [&](const DateLanguage& one) { return one.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

/// Every word for a month or a weekday in any language, in lower case and without its dot.
struct Names {
  std::map<std::string, std::set<unsigned>> months;  ///< The numbers of the months that a word means.
  std::map<std::string, std::set<unsigned>>
      weekdays;  ///< The numbers of the weekdays that a word means, as in ISO 8601: Monday is 1.
  Names() {
    for (const DateLanguage& one : date_languages()) {
      for (const auto& months_of : {one.months, one.short_months}) learn(months_of, months);
      for (const auto& days_of : {one.weekdays, one.short_weekdays}) learn(days_of, weekdays);
    }
  }

 private:
  template <typename List>
  static void learn(const List& list, std::map<std::string, std::set<unsigned>>& meanings) {
    unsigned number = 0;
    for (std::string_view name : list) {
      ++number;
      if (name.ends_with('.')) name.remove_suffix(1);
      if (!name.empty()) meanings[std::string(name)].insert(number);
    }
  }
};

/// Parses a text without knowledge of its form and language. A text that it parses has only one meaning.
class Reader {
 public:
  year_month_day read(const std::string& text) {
    numbers_.clear();
    month_ = weekday_ = 0;
    for (std::size_t at = 0; at < text.size();) {
      std::string part;
      if (is_digit(text[at])) {
        while (at < text.size() && is_digit(text[at])) part += text[at++];
        numbers_.push_back(part);
      } else if (is_letter(text[at])) {
        // A hyphen is part of a weekday ("terça-feira"), or separates a month from its neighbours.
        while (at < text.size() && (is_letter(text[at]) || text.compare(at, 6, "-feira") == 0))
          part += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at++])));
        word(part);
      } else {
        ++at;
      }
    }
    const year_month_day date = put_together();
    if (weekday_ != 0 && weekday(date).iso_encoding() != weekday_) throw std::runtime_error("another weekday");
    return date;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }

  void word(const std::string& text) {
    if (const auto found = names_.months.find(text); found != names_.months.end())
      month_ = *found->second.begin();
    else if (const auto day = names_.weekdays.find(text); day != names_.weekdays.end())
      weekday_ = *day->second.begin();
    else if (!fillers_.contains(text))
      throw std::runtime_error("the unknown word " + text);
  }

  year_month_day put_together() const {
    std::vector<std::string> parts = numbers_;
    if (parts[0].size() == 4) std::reverse(parts.begin(), parts.end());
    if (month_ != 0) parts.insert(parts.begin() + 1, std::to_string(month_));
    if (parts.size() != 3) throw std::runtime_error("not a day, a month and a year");
    int y = std::stoi(parts[2]);
    if (parts[2].size() == 2) y += y < 70 ? 2000 : 1900;
    return year{y} / std::stoi(parts[1]) / std::stoi(parts[0]);
  }

  Names names_;
  std::set<std::string> fillers_ = {"of", "the", "st", "nd",  "rd", "th", "den", "le",
                                    "er", "el",  "de", "del", "em", "il", "º"};
  std::vector<std::string> numbers_;
  unsigned month_ = 0;
  unsigned weekday_ = 0;
};

year_month_day from_iso(const std::string& text) {
  REQUIRE(text.size() == 10);
  return year{std::stoi(text.substr(0, 4))} / std::stoi(text.substr(5, 2)) / std::stoi(text.substr(8, 2));
}

struct Parts {
  PairTexts training, held_out;
};
Parts dates(const std::string& arguments) {
  const xtape::test::Folder folder;
  REQUIRE(run_program("dates", folder.path() + " " + arguments) == 0);
  return {xtape::read_pairs(folder.path() + "/training.tsv"), xtape::read_pairs(folder.path() + "/validation.tsv")};
}

}  // namespace

TEST_CASE("dates in each language") {
  const year_month_day some = 1998y / May / 3d;     // a Sunday
  const year_month_day first = 2004y / March / 1d;  // a Monday
  const struct {
    const char* language;
    year_month_day date;
    const char* form;
    const char* text;
  } cases[] = {
      {"numbers", some, "%d.%m.%Y", "03.05.1998"},
      {"numbers", some, "%e/%n/%y", "3/5/98"},
      {"numbers", 2005y / October / 21d, "%e-%n-%y", "21-10-05"},
      {"numbers", some, "%Y-%m-%d", "1998-05-03"},
      {"English", some, "%A, %o of %B %Y", "Sunday, 3rd of May 1998"},
      {"English", first, "%b %e, %Y", "Mar 1, 2004"},
      {"English", first, "%a, %d %b %Y", "Mon, 01 Mar 2004"},
      {"German", some, "%A, den %o %B %Y", "Sonntag, den 3. Mai 1998"},
      {"German", first, "%a., %o %b %Y", "Mo., 1. Mär. 2004"},
      {"French", some, "le %A %o %B %Y", "le Dimanche 3 Mai 1998"},
      {"French", first, "%o %B %Y", "1er Mars 2004"},
      {"French", 2000y / February / 29d, "%o %b %y", "29 Févr. 00"},
      {"French", 2000y / February / 29d, "%d-%h-%Y", "29-Févr-2000"},
      {"Spanish", some, "%A, %e de %B de %Y", "Domingo, 3 de Mayo de 1998"},
      {"Spanish", first, "%o de %B de %Y", "1º de Marzo de 2004"},
      {"Portuguese", first, "%A, %o de %B de %Y", "Segunda-feira, 1º de Março de 2004"},
      {"Portuguese", some, "%d/%h/%Y", "03/Mai/1998"},
      {"Italian", first, "%A %e %B %Y", "Lunedì 1 Marzo 2004"},
  };
  for (const auto& [name, date, form, text] : cases)
    CHECK(written(date, language(name), form, NameCase::title) == text);
  CHECK(written(some, language("English"), "%A the %o of %B %Y", NameCase::lower) == "sunday the 3rd of may 1998");
}

TEST_CASE("endings of ordinals") {
  const auto ends = [](const char* name) {
    std::string all;
    for (unsigned day = 1; day <= 31; ++day) all += std::string(language(name).ordinal_end(day)) + " ";
    return all;
  };
  CHECK(ends("English") ==
        "st nd rd th th th th th th th th th th th th th th th th th st nd rd th th th th th th th st ");
  CHECK(ends("French") == "er" + std::string(31, ' '));
  CHECK(ends("Spanish") == "º" + std::string(31, ' '));
}

TEST_CASE("years have two digits only from 1970 to 2069") {
  const auto short_year = [](int y) { return written(year{y} / 5 / 3, language("numbers"), "%d.%m.%y", {}); };
  CHECK(short_year(1970) == "03.05.70");
  CHECK(short_year(1999) == "03.05.99");
  CHECK(short_year(2000) == "03.05.00");
  CHECK(short_year(2069) == "03.05.69");
  CHECK(short_year(1969) == "03.05.1969");
  CHECK(short_year(2070) == "03.05.2070");
}

TEST_CASE("no word means two months, two weekdays, or a month and a weekday") {
  const Names names;
  CHECK(names.months.size() > 90);
  CHECK(names.weekdays.size() > 50);
  for (const auto& month : names.months) {
    CAPTURE(month.first);
    CHECK(month.second.size() == 1);
    CHECK(!names.weekdays.contains(month.first));
  }
  for (const auto& weekday : names.weekdays) {
    CAPTURE(weekday.first);
    CHECK(weekday.second.size() == 1);
  }
}

TEST_CASE("a date in every form parses back to the same date and weekday") {
  Reader reader;
  const sys_days end = sys_days(last_date) + days(1);
  std::int64_t wrong = 0;
  std::int64_t texts = 0;
  NameCase names = NameCase::lower;
  // Every 11th date covers all days of all months, and years of every kind.
  for (sys_days day = first_date; day < end; day += days(11))
    for (const DateLanguage& one : date_languages())
      for (const std::string_view form : one.forms) {
        names = names == NameCase::lower ? NameCase::title : NameCase::lower;
        if (reader.read(written(day, one, form, names)) != year_month_day(day)) ++wrong;
        ++texts;
      }
  CHECK(texts > 800000);
  CHECK(wrong == 0);
}

TEST_CASE(
    "pairs: the requested number, correct and unambiguous, with held-out dates in no form in the training split") {
  const Parts pairs = dates("");
  REQUIRE(pairs.training.source.size() == 100000);
  REQUIRE(pairs.training.target.size() == 100000);
  REQUIRE(pairs.held_out.source.size() == 2000);
  const std::set<std::string> held_out(pairs.held_out.target.begin(), pairs.held_out.target.end());
  CHECK(held_out.size() == 2000);
  Reader reader;
  std::unordered_map<std::string, std::string> meanings;
  std::int64_t wrong = 0;
  for (const PairTexts* part : {&pairs.held_out, &pairs.training})
    for (std::size_t i = 0; i < part->source.size(); ++i) {
      const std::string& target = part->target[i];
      const year_month_day date = from_iso(target);
      const bool known = date.ok() && date >= first_date && date <= last_date;
      const bool one_meaning = meanings.emplace(part->source[i], target).first->second == target;
      const bool in_its_part = held_out.contains(target) == (part == &pairs.held_out);
      if (!known || !one_meaning || !in_its_part || reader.read(part->source[i]) != date) ++wrong;
    }
  CHECK(wrong == 0);
  CHECK(meanings.size() > 100000);  // few texts are repeated
}

TEST_CASE("both splits have every language, and the validation split has no character that the training split lacks") {
  const Parts pairs = dates("5000 10000");
  std::string text;
  for (const std::string& line : pairs.training.source) text += line;
  const xtape::CharacterTokenizer tokenizer(text, xtape::CharacterTokenizer::Unknown::error, true);
  for (const std::string& line : pairs.held_out.source) CHECK_NOTHROW(tokenizer.encode(line));
  const auto share = [](const PairTexts& part, const std::string& words) {
    const auto count = std::count_if(part.source.begin(), part.source.end(),
                                     [&](const std::string& text) { return text.find(words) != std::string::npos; });
    return static_cast<double>(count) / static_cast<double>(part.source.size());
  };
  for (const char* words : {" of ", ", den ", "1er ", " del ", "-feira", "venerdì", "/", "Mo", "º"}) {
    CHECK(share(pairs.training, words) > 0.0005);
    CHECK(share(pairs.held_out, words) == doctest::Approx(share(pairs.training, words)).epsilon(0.4));
  }
}

TEST_CASE("the held-out pairs are reproducible and independent of the size of the training split") {
  const Parts pairs = dates("300 50");
  const Parts more = dates("400 50");
  CHECK(more.held_out.source == pairs.held_out.source);
  CHECK(std::equal(pairs.training.source.begin(), pairs.training.source.end(), more.training.source.begin()));
}

TEST_CASE("invalid dates, empty splits and unknown codes are errors") {
  for (const char* wrong : {"", "x 10 73049", "x 10 0", "x 0"}) CHECK(run_program("dates", wrong) == 2);
  const DateLanguage& english = language("English");
  CHECK_THROWS_WITH_AS(written(1899y / December / 31d, english, "%e", {}),
                       "the date 1899-12-31 is outside 1900-01-01 to 2099-12-31", std::invalid_argument);
  CHECK_THROWS_AS(written(2001y / February / 29d, english, "%e", {}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(written(2001y / 2 / 28d, english, "%e %q", {}), "the form \"%e %q\" has the unknown code '%q'",
                       std::invalid_argument);
  CHECK_THROWS_AS(written(2001y / 2 / 28d, english, "%", {}), std::invalid_argument);
}
