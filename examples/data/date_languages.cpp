// Tables of the languages of dates. A text must have the same meaning in all languages. "mar" is the third month in
// English, Spanish, Portuguese and Italian, but also means Tuesday in French, Spanish and Italian. French, Spanish and
// Italian therefore have no short weekdays. Numbers alone are always a day, a month and a year, unless four digits come
// first.
#include "date_forms.hpp"

namespace dataset {

namespace {

constexpr std::string_view no_end(unsigned /*day*/) {
  return "";
}

// ---- numbers

constexpr std::string_view number_forms[] = {
    "%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y",   "%d %m %Y",  //
    "%d.%m.%y", "%d/%m/%y", "%d-%m-%y",   "%d %m %y",  //
    "%e.%n.%Y", "%e/%n/%Y", "%e-%n-%Y",   "%e %n %Y",  //
    "%e.%n.%y", "%e/%n/%y", "%e-%n-%y",   "%e %n %y",  //
    "%e.%m.%Y", "%e/%m/%Y", "%e. %n. %Y",              //
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d",   "%Y-%n-%e",
};
constexpr DateLanguage numbers = {.name = "numbers",
                                  .months = {},
                                  .short_months = {},
                                  .weekdays = {},
                                  .short_weekdays = {},
                                  .ordinal_end = no_end,
                                  .forms = number_forms};

// ---- English

constexpr std::string_view english_end(unsigned day) {
  if (day == 11 || day == 12 || day == 13) return "th";
  constexpr std::string_view ends[] = {"th", "st", "nd", "rd"};
  return day % 10 < 4 ? ends[day % 10] : "th";
}
constexpr std::string_view english_forms[] = {
    "%e %B %Y",      "%o %B %Y",        "%o of %B %Y",  "%o of %B, %Y",       "the %o of %B %Y", "%B %e, %Y",
    "%B %o, %Y",     "%B %e %Y",        "%b %e, %Y",    "%e %b %Y",           "%d %b %Y",        "%d-%b-%Y",
    "%d-%b-%y",      "%e %b %y",        "%e %B %y",     "%Y %B %e",           "%A, %e %B %Y",    "%A %e %B %Y",
    "%A, %B %e, %Y", "%A, %o of %B %Y", "%A %B %o %Y",  "%A the %o of %B %Y", "%a, %d %b %Y",    "%a %b %e %Y",
    "%a, %e %b %y",  "%a %d/%m/%Y",     "%A, %d.%m.%Y",
};
constexpr DateLanguage english = {
    .name = "English",
    .months = {"january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
               "november", "december"},
    .short_months = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
    .weekdays = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"},
    .short_weekdays = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"},
    .ordinal_end = english_end,
    .forms = english_forms};

// ---- German

constexpr std::string_view german_end(unsigned /*day*/) {
  return ".";
}
constexpr std::string_view german_forms[] = {
    "%o %B %Y",     "%o %b %Y",     "%o %h %Y",     "%o%h.%Y",      "%o %B %y",      "%o %h %y",         "%e %B %Y",
    "%d. %B %Y",    "%d. %h %Y",    "den %o %B %Y", "%d-%h-%Y",     "%A, %o %B %Y",  "%A, den %o %B %Y", "%A %o %B %Y",
    "%A, %d.%m.%Y", "%A, %d.%m.%y", "%a, %o %B %Y", "%a, %d.%m.%Y", "%a., %o %b %Y", "%a %e.%n.%y",
};
constexpr DateLanguage german = {
    .name = "German",
    .months = {"januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober",
               "november", "dezember"},
    .short_months = {"jan.", "feb.", "mär.", "apr.", "mai", "jun.", "jul.", "aug.", "sep.", "okt.", "nov.", "dez."},
    .weekdays = {"montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"},
    .short_weekdays = {"mo", "di", "mi", "do", "fr", "sa", "so"},
    .ordinal_end = german_end,
    .forms = german_forms};

// ---- French

constexpr std::string_view french_end(unsigned day) {
  return day == 1 ? "er" : "";
}
constexpr std::string_view french_forms[] = {
    "%o %B %Y",     "%e %B %Y",    "%o %b %Y",       "%o %h %Y",    "%o %B %y",    "%o %h %y",
    "%d %B %Y",     "le %o %B %Y", "le %o %b %Y",    "%d-%h-%Y",    "%d-%h-%y",    "%A %o %B %Y",
    "%A, %o %B %Y", "%A %o %b %Y", "le %A %o %B %Y", "%A %o %B %y", "%A %d/%m/%Y", "%A %d/%m/%y",
};
constexpr DateLanguage french = {
    .name = "French",
    .months = {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre",
               "novembre", "décembre"},
    .short_months = {"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."},
    .weekdays = {"lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"},
    .short_weekdays = {},
    .ordinal_end = french_end,
    .forms = french_forms};

// ---- Spanish, Portuguese, Italian

constexpr std::string_view first_only(unsigned day) {
  return day == 1 ? "º" : "";
}

constexpr std::string_view spanish_forms[] = {
    "%e de %B de %Y",
    "%o de %B de %Y",
    "%e de %B del %Y",
    "%e de %B, %Y",
    "%e %B %Y",
    "%e de %B de %y",
    "%e de %b de %Y",
    "%e %b %Y",
    "%e %b. %Y",
    "%e %b %y",
    "%d-%b-%Y",
    "%d/%b/%y",
    "el %e de %B de %Y",
    "%A, %e de %B de %Y",
    "%A %e de %B de %Y",
    "%A %o de %B de %Y",
    "el %A %e de %B de %Y",
    "%A %e %b %Y",
    "%A, %e de %B del %Y",
    "%A %d/%m/%Y",
    "%A, %d/%m/%y",
};
constexpr DateLanguage spanish = {
    .name = "Spanish",
    .months = {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
               "noviembre", "diciembre"},
    .short_months = {"ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic"},
    .weekdays = {"lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"},
    .short_weekdays = {},
    .ordinal_end = first_only,
    .forms = spanish_forms};

constexpr std::string_view portuguese_forms[] = {
    "%e de %B de %Y",     "%o de %B de %Y",     "%d de %B de %Y",
    "%e %B %Y",           "%e de %B de %y",     "%e de %b de %Y",
    "%e %b %Y",           "%e %h %Y",           "%e %h %y",
    "%d/%h/%Y",           "%d-%h-%y",           "em %e de %B de %Y",
    "%A, %e de %B de %Y", "%A, %o de %B de %Y", "%A %e de %B de %Y",
    "%A, %e %B %Y",       "%a, %e de %h de %Y", "%a., %e de %b de %Y",
    "%a %d/%m/%Y",        "%A, %d/%m/%Y",       "%A, %d/%m/%y",
};
constexpr DateLanguage portuguese = {
    .name = "Portuguese",
    .months = {"janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro",
               "novembro", "dezembro"},
    .short_months = {"jan.", "fev.", "mar.", "abr.", "mai.", "jun.", "jul.", "ago.", "set.", "out.", "nov.", "dez."},
    .weekdays = {"segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado", "domingo"},
    .short_weekdays = {"seg", "ter", "qua", "qui", "sex", "sáb", "dom"},
    .ordinal_end = first_only,
    .forms = portuguese_forms};

constexpr std::string_view italian_forms[] = {
    "%e %B %Y",    "%o %B %Y",     "%d %B %Y",    "%e %b %Y",    "%e %b. %Y",   "%e %B %y",
    "%e %b %y",    "%d-%b-%Y",     "%d/%b/%y",    "il %e %B %Y", "il %o %B %Y", "%A %e %B %Y",
    "%A %o %B %Y", "%A, %e %B %Y", "%A %e %b %Y", "%A %e %B %y", "%A %d/%m/%Y", "%A %d/%m/%y",
};
constexpr DateLanguage italian = {
    .name = "Italian",
    .months = {"gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre",
               "novembre", "dicembre"},
    .short_months = {"gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"},
    .weekdays = {"lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"},
    .short_weekdays = {},
    .ordinal_end = first_only,
    .forms = italian_forms};

constexpr DateLanguage languages[] = {numbers, english, german, french, spanish, portuguese, italian};

}  // namespace

std::span<const DateLanguage> date_languages() {
  return languages;
}

}  // namespace dataset
