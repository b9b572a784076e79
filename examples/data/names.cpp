// Writes data for a tagger: sentences with the names of people, dates and amounts of money. Each line is
// word<TAB>label. A blank line follows each sentence. Labels begin with B- at the first word of a name and with I- at
// its other words. All other words have the label O. The word alone does not determine the label: May and April are
// months and first names, and a number can be part of a date or an amount, or count something else. No last name and no
// sentence of FOLDER/validation.txt is in FOLDER/training.txt.
//
// usage: names FOLDER [TRAINING (3000) [HELD_OUT (500)]]
//
// g++ -std=c++20 -O2 names.cpp -o names
#include <iostream>
#include <set>
#include <span>

#include "files.hpp"

namespace {
using namespace dataset;

constexpr const char* subjects[] = {"the board", "the club", "our team", "the council", "she", "everyone"};
constexpr const char* verbs[] = {"met", "left", "may meet", "will march", "can leave", "moved", "sold houses"};
constexpr const char* counted[] = {"games", "visits", "letters", "attempts"};
constexpr const char* months[] = {"January", "February", "March",     "April",   "May",      "June",
                                  "July",    "August",   "September", "October", "November", "December"};
constexpr const char* first_names[] = {"Anna", "Boris", "Carla", "David", "Elena", "Grace", "April", "May", "June"};
// Last names consist of three parts, so that most are rare, as in real texts.
constexpr const char* begins[] = {"Ad", "Bar", "Cor", "Dal", "El", "Fer", "Gar", "Hal", "Jan", "Kel"};
constexpr const char* middles[] = {"a", "be", "di", "ga", "li", "mo", "na", "ri", "so", "ve"};
constexpr const char* held_out_end = "ck";  // only in the validation split
constexpr const char* ends[] = {"ler", "lon", "man", "nev", "rd", "s", "sen", "ski", "ti", "ton"};
constexpr const char* currencies[] = {"dollars", "euros", "pounds", "francs"};
constexpr const char* small_numbers[] = {"two", "three", "four", "five", "seven", "nine", "twenty", "ninety"};

/// The words of a sentence with their labels. The number of the sentence determines its random draws.
class Sentence {
 public:
  Sentence(std::uint64_t number, bool held_out) : counter_(number * draws_of_one), held_out_(held_out) {
    chance(2) ? person() : outside(one_of(subjects));
    outside(one_of(verbs));
    if (chance(2)) with_date();
    if (chance(2)) outside("for"), amount();
    if (chance(3)) outside("with"), person();
    if (chance(3)) outside("after"), outside(number_below(98)), outside(one_of(counted));
    outside(".");
  }
  /// The lines of the sentence, without the blank line.
  const std::string& lines() const { return lines_; }

 private:
  static constexpr std::uint64_t draws_of_one = 64;  // more than any sentence needs
  std::uint64_t draw(std::uint64_t bound) {
    constexpr std::uint64_t stream = 12;
    return draw_below(bound, stream, counter_++);
  }
  bool chance(std::uint64_t of) { return draw(of) == 0; }
  std::string one_of(std::span<const char* const> words) { return words[draw(words.size())]; }
  /// Returns a random number from 2 on.
  std::string number_below(std::uint64_t bound) { return std::to_string(2 + draw(bound)); }

  void add(const std::string& word, const std::string& label) {
    lines_ += (lines_.empty() ? "" : "\n") + word + "\t" + label;
  }
  /// Adds each word of a text with its label. The label is of(true) for the first word and of(false) for all other
  /// words.
  template <class Label>
  void each_word(const std::string& text, const Label& of) {
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = text.find(' ', begin);
      add(text.substr(begin, end - begin), of(begin == 0));
    }
  }
  void outside(const std::string& text) {
    each_word(text, [](bool) { return "O"; });
  }
  void name(const std::string& text, const std::string& kind) {
    each_word(text, [&](bool first) { return (first ? "B-" : "I-") + kind; });
  }

  void person() {
    const std::string first = one_of(first_names);
    if (chance(3)) return name(first, "PERSON");
    name(first + " " + last_name(), "PERSON");
  }
  std::string last_name() {
    // This statement fixes the order of the draws for every compiler.
    const std::string begin = one_of(begins), middle = one_of(middles);
    return begin + middle + (held_out_ ? held_out_end : one_of(ends));
  }
  void with_date() {
    const std::string month = one_of(months), day = std::to_string(1 + draw(28));
    const std::string year = std::to_string(1950 + draw(75));
    switch (draw(4)) {
      case 0:
        return outside("on"), name(day + " " + month, "DATE");
      case 1:
        return outside("on"), name(month + " " + day, "DATE");
      case 2:
        return outside("on"), name(month + " " + day + " , " + year, "DATE");
      default:
        return outside("in"), name(month + (chance(2) ? " " + year : ""), "DATE");
    }
  }
  void amount() {
    const std::string count = chance(2) ? one_of(small_numbers) + " hundred" : number_below(900);
    name(count + " " + one_of(currencies), "MONEY");
  }

  std::uint64_t counter_;
  bool held_out_;
  std::string lines_;
};
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) throw std::invalid_argument("usage: names FOLDER [TRAINING [HELD_OUT]]");
  constexpr std::int64_t most = 1000000;
  const auto training = static_cast<std::uint64_t>(number_argument(argc, argv, 2, 3000, 1, most));
  const auto held_out = static_cast<std::uint64_t>(number_argument(argc, argv, 3, 500, 1, most));
  std::set<std::string> trained;
  std::vector<std::string> lines;
  const auto take = [&](const Sentence& sentence) {
    lines.push_back(sentence.lines());
    lines.emplace_back();
  };
  for (std::uint64_t i = 0; i < training; ++i) {
    const Sentence sentence(i, false);
    trained.insert(sentence.lines());
    take(sentence);
  }
  write_lines(argv[1], "training.txt", lines);
  lines.clear();
  // Both splits could contain a short sentence without a last name. The loop skips those of the training split.
  for (std::uint64_t i = training; lines.size() < 2 * held_out; ++i) {
    const Sentence sentence(i, true);
    if (!trained.contains(sentence.lines())) take(sentence);
  }
  write_lines(argv[1], "validation.txt", lines);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
