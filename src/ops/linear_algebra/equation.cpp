#include "ops/linear_algebra/equation.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/messages/wording.hpp"

namespace xtape {

namespace {
constexpr const char* dots = "...";
constexpr const char* letters_for_ellipses = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw ShapeError("equation '" + text + "': " + why);
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The labels before and after the ellipsis. If there is no ellipsis, all labels are in `before`.
struct Operands {
  std::string before, after;
  bool has_ellipsis = false;
};

Operands parse_term(const std::string& text, const std::string& equation) {
  Operands term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, dots) == 0) {
      if (term.has_ellipsis) refuse(equation, "'" + text + "' has two ellipses");
      term.has_ellipsis = true;
      i += 2;
    } else if (is_letter(text[i])) {
      (term.has_ellipsis ? term.after : term.before) += text[i];
    } else {
      refuse(equation, std::string("'") + text[i] + "' is not a letter; axes are letters a-z and A-Z, and '...'");
    }
  }
  return term;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}
/// Splits `text` at spaces.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_name(const std::string& word) {
  const auto fits = [](char c) { return is_letter(c) || c == '_' || (c >= '0' && c <= '9'); };
  return is_letter(word[0]) && std::ranges::all_of(word, fits);
}

/// Assigns letters to words: the first letter of the word if it is unused, or otherwise any unused letter.
class AxisLabels {
 public:
  explicit AxisLabels(const std::string& equation) : equation_(equation) {}

  std::string of(const std::string& word) {
    if (word == dots) return word;
    if (!is_name(word))
      refuse(equation_,
             "'" + word + "' is not a valid name of an axis: names have letters, digits and '_', a letter first");
    for (const auto& [known, letter] : letters_)
      if (known == word) return {letter};
    const std::string candidates = word[0] + std::string(letters_for_ellipses);
    const auto is_free = [&](char letter) {
      return std::ranges::none_of(letters_, [&](const auto& each) { return each.second == letter; });
    };
    const auto free = std::ranges::find_if(candidates, is_free);
    if (free == candidates.end()) refuse(equation_, "has too many axes: there are 52 letters");
    letters_.emplace_back(word, *free);
    return {*free};
  }

  std::string names() const {
    std::string list;
    for (const auto& [word, letter] : letters_)
      if (word.size() > 1) list += (list.empty() ? "" : ", ") + std::string(1, letter) + " is " + word;
    return list;
  }

 private:
  const std::string& equation_;
  std::vector<std::pair<std::string, char>> letters_;
};
}  // namespace

LabelledEquation in_labels(const std::string& text) {
  const std::size_t arrow = text.find("->");
  std::vector<std::string> terms = split_at_commas(text.substr(0, arrow));
  if (arrow != std::string::npos) terms.push_back(text.substr(arrow + 2));
  if (std::ranges::none_of(terms, [](const std::string& term) { return words_of(term).size() > 1; })) return {text, ""};
  if (arrow == std::string::npos) refuse(text, "has words as axis labels, so it needs '->' and the axes of the result");
  AxisLabels letters(text);
  std::string lettered;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i > 0) lettered += i + 1 < terms.size() ? "," : "->";
    for (const std::string& word : words_of(terms[i])) lettered += letters.of(word);
  }
  return {lettered, letters.names()};
}

Equation parse_equation(const std::string& text, const std::vector<Shape>& shapes) {
  std::string plain = text;
  plain.erase(std::remove(plain.begin(), plain.end(), ' '), plain.end());
  const std::size_t arrow = plain.find("->");
  const std::vector<std::string> parts = split_at_commas(plain.substr(0, arrow));
  if (parts.size() != shapes.size())
    refuse(text, "names " + std::to_string(parts.size()) + (parts.size() == 1 ? " operand" : " operands") + ", got " +
                     std::to_string(shapes.size()));

  std::vector<Operands> terms;
  std::string used = plain;
  std::size_t covered = 0;  // number of axes that the longest ellipsis covers
  for (std::size_t i = 0; i < parts.size(); ++i) {
    terms.push_back(parse_term(parts[i], text));
    const std::size_t named = terms[i].before.size() + terms[i].after.size();
    const std::size_t rank = shapes[i].size();
    if (terms[i].has_ellipsis ? named > rank : named != rank)
      refuse(text, "'" + parts[i] + "' names " + std::to_string(named) + (named == 1 ? " axis" : " axes") +
                       ", operand " + std::to_string(i) + " has shape " + to_string(shapes[i]));
    if (terms[i].has_ellipsis) covered = std::max(covered, rank - named);
  }
  Equation equation;
  for (const char* letter = letters_for_ellipses; *letter != 0 && equation.ellipsis.size() < covered; ++letter)
    if (!contains(used, *letter)) equation.ellipsis += *letter;
  if (equation.ellipsis.size() < covered) refuse(text, "has too many axes: there are 52 letters");

  std::string all;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t named = terms[i].before.size() + terms[i].after.size();
    const std::string middle =
        terms[i].has_ellipsis ? equation.ellipsis.substr(covered - (shapes[i].size() - named)) : "";
    equation.operands.push_back(terms[i].before + middle + terms[i].after);
    all += terms[i].before + terms[i].after;
  }
  if (arrow == std::string::npos) {
    std::string once;
    for (char letter : all)
      if (std::ranges::count(all, letter) == 1) once += letter;
    std::ranges::sort(once);
    equation.result = equation.ellipsis + once;
    return equation;
  }
  const Operands result = parse_term(plain.substr(arrow + 2), text);
  if (covered > 0 && !result.has_ellipsis)
    refuse(text, "the result lacks '...': sum over those axes first, or name them");
  equation.result = result.before + (result.has_ellipsis ? equation.ellipsis : "") + result.after;
  for (char letter : result.before + result.after) {
    if (!contains(all, letter)) refuse(text, std::string("'") + letter + "' of the result is not in any operand");
    if (std::ranges::count(equation.result, letter) > 1)
      refuse(text, std::string("'") + letter + "' occurs twice in the result");
  }
  return equation;
}

std::vector<std::int64_t> sizes_of_letters(const Equation& equation, const std::vector<Shape>& shapes,
                                           const std::string& text, bool broadcast) {
  std::vector<std::int64_t> sizes(256, -1);
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (std::size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const char letter = equation.operands[i][axis];
      std::int64_t& known = sizes[static_cast<unsigned char>(letter)];
      const std::int64_t size = shapes[i][axis];
      if (known == -1 || (broadcast && known == 1)) {
        known = size;
      } else if (size != known && !(broadcast && size == 1)) {
        std::string all;
        for (const Shape& shape : shapes) all += (all.empty() ? "" : " and ") + to_string(shape);
        const std::string name = contains(equation.ellipsis, letter) ? dots : std::string(1, letter);
        refuse(text, "axis '" + name + "' has size " + std::to_string(known) + " and size " + std::to_string(size) +
                         " in operands of shapes " + all);
      }
    }
  return sizes;
}

std::string with_axis(const std::string& equation, std::int64_t a_axis, std::int64_t b_axis, std::int64_t result_axis) {
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  char added = 'A';  // a letter that the equation does not use
  while (equation.find(added) != std::string::npos) added = added == 'Z' ? 'a' : static_cast<char>(added + 1);
  const auto extended = [&](std::string letters, std::int64_t axis) {
    if (axis >= 0) letters.insert(static_cast<std::size_t>(axis), 1, added);
    return letters;
  };
  return extended(equation.substr(0, comma), a_axis) + "," +
         extended(equation.substr(comma + 1, arrow - comma - 1), b_axis) + "->" +
         extended(equation.substr(arrow + 2), result_axis);
}

}  // namespace xtape
