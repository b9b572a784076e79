#include <algorithm>
#include <optional>

#include "base/messages/wording.hpp"
#include "kernels/attention/attention.hpp"

namespace xtape {

namespace {
/// Returns the label of `from` that is neither in `heads` nor in `others`. Returns 0 if there is no such label, or more
/// than one.
char only_in(const std::string& from, const std::string& heads, const std::string& others) {
  char found = 0;
  for (char letter : from)
    if (!contains(heads, letter) && !contains(others, letter)) {
      if (found != 0) return 0;
      found = letter;
    }
  return found;
}

std::optional<AttentionLabels> labels_of(const std::string& scores, const std::string& outputs) {
  const auto part = [](const std::string& text, char from, char to) {
    const std::size_t begin = from == 0 ? 0 : text.find(from) + 1;
    return text.substr(begin, text.find(to, begin) - begin);
  };
  AttentionLabels letters{part(scores, 0, ','), part(scores, ',', '-'), part(outputs, ',', '-'),
                          part(scores, '>', 0), part(outputs, '>', 0),  {}};
  const std::string weights = part(outputs, 0, ',');
  if (weights.size() != letters.scores.size() || letters.scores.empty()) return std::nullopt;
  char width = 'a';
  while (contains(scores, width)) ++width;
  const auto renamed = [&](char letter) {
    const std::size_t at = weights.find(letter);
    return at == std::string::npos ? width : letters.scores[at];
  };
  std::transform(letters.v.begin(), letters.v.end(), letters.v.begin(), renamed);
  std::transform(letters.y.begin(), letters.y.end(), letters.y.begin(), renamed);
  for (char letter : letters.scores)
    if (contains(letters.q, letter) && contains(letters.k, letter) && contains(letters.v, letter) &&
        contains(letters.y, letter))
      letters.heads += letter;
  letters.query = only_in(letters.q, letters.heads, letters.k);
  letters.width = only_in(letters.q, letters.heads, letters.scores);
  letters.key = only_in(letters.k, letters.heads, letters.q);
  letters.value_width = only_in(letters.v, letters.heads, letters.scores);
  const std::size_t rank = letters.heads.size() + 2;
  const bool whole = letters.query != 0 && letters.width != 0 && letters.key == letters.scores.back() &&
                     letters.value_width != 0 && contains(letters.v, letters.key) &&
                     contains(letters.y, letters.query) && contains(letters.y, letters.value_width) &&
                     contains(letters.scores, letters.query);
  for (const std::string* each : {&letters.q, &letters.k, &letters.v, &letters.scores, &letters.y})
    if (each->size() != rank) return std::nullopt;
  return whole ? std::optional(letters) : std::nullopt;
}
}  // namespace

AttentionLabels labels_of_attention(const Attributes& attributes) {
  const auto& scores = attributes.get<std::string>("scores");
  const auto& outputs = attributes.get<std::string>("outputs");
  const std::optional<AttentionLabels> letters = labels_of(scores, outputs);
  if (!letters) throw Error("the equations '" + scores + "' and '" + outputs + "' do not describe an attention");
  return *letters;
}

}  // namespace xtape
